"""The engine: one thread that hosts the session, and the threads that read the sensors."""
