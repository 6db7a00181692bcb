"""Processes: the worker, the list of skep's own processes, starting skep's programs, start at login."""
