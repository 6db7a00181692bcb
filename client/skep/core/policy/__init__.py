"""The policy: what the worker may use now, and why."""
