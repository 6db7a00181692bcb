"""Words: a `Text` becomes English or German here, at the edge. Only front ends import this package."""
