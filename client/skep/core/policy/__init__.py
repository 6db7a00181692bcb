"""What the worker may use now, and why."""
