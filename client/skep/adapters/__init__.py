"""Implementations of the ports, one module each; external errors become SkepErrors here, with a title and a hint."""
