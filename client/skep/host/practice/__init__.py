"""A practice swarm on this computer."""
