"""The app: its parts, the window, the tray, what it does in the background."""
