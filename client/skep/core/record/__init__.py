"""Records: contributions, resource usage, and the timeline of a day."""
