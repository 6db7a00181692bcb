"""Several devices of this computer in one worker: each has a process, a rank, and rank 0 alone speaks to the swarm."""
