"""The Qt front end: tray, window and pages. It talks only to the engine, and never imports torch or hivemind."""
