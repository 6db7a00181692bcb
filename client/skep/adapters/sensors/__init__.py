"""What the sensors of all systems share, and sensors that need no service of the system."""
