"""The app: construction of its parts, the main window, the tray icon, and background work."""
