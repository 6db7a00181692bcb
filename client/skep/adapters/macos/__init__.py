"""Sensors of macOS."""
