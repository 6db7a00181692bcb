"""Wrappers of hivemind's optimizer and averagers; with `connection`, the only packages that subclass it."""
