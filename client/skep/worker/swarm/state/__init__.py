"""The state of a run: handed over to newcomers, loaded from other peers, kept on disk."""
