"""The Qt face of the engine; not yet built."""
