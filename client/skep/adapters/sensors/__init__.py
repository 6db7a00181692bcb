"""The base classes of the sensors, and sensors that need no system service."""
