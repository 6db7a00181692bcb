"""The worker as a process: its pipes, children, priority and memory."""
