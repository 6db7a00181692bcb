"""Network access: downloads over HTTP, updates, and the local socket of the control commands."""
