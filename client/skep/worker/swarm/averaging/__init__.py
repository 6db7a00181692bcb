"""Rounds with other peers: the group, the all-reduce, its checks, and the averagers of gradients and of the state."""
