"""What in this computer can compute, what it does now, and its power limit."""
