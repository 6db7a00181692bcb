"""The operator's side: seed peer, practice swarm, dataset tools. Real peers, always in processes of their own."""
