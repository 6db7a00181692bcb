"""The connection doctor: whether this computer can take part in a project, and what to do where it cannot."""
