"""The settings: their declarations, their checks, the weekly grid of hours."""
