"""The declarations of the settings, one file per group."""
