"""The computing devices of this computer, their readings, and their power limit."""
