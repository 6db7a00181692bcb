"""The settings: declarations, checks, and the weekly grid of hours."""
