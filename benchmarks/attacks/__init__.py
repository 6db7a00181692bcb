"""Attacks on a run's peers by a process that uses stock hivemind alone. Used by `benchmarks/faults hostile`."""
