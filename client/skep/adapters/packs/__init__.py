"""Compute packs on this computer: the wheels that are fetched, and the folders that they are laid down in."""
