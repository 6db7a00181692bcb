"""The Qt face of the engine: tray, window and pages. It talks to the engine only, and starts without the training stack."""
