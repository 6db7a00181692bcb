"""The engine: the thread that runs the session, and the threads that read the sensors."""
