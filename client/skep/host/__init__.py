"""The operator's side: seed peer, practice swarm, dataset tools. Peers always run in separate processes."""
