"""hivemind, wrapped: the only package that subclasses it."""
