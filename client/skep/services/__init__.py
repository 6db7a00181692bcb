"""Services for front ends besides the engine: diagnosis, joining, summaries, updates."""
