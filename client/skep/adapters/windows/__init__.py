"""Sensors of Windows."""
