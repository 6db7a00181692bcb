"""The terminal face of the engine."""
