"""What is remembered: contributions, what they cost, the timeline of a day."""
