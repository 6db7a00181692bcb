"""Wrappers of hivemind; the only package that subclasses it."""
