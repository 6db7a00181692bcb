"""The declarations of the settings: `computing` for what training may use and when, `program` for all others."""
