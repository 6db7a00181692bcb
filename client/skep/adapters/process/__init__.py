"""Processes: the worker, what skep has started, how its programs are started."""
