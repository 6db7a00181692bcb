"""The pages of the window, each a function of the snapshot."""
