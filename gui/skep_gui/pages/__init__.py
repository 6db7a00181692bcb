"""The pages, each a function of the snapshot."""
