"""The operator's side: seed peer, practice swarm. Real peers, always in processes of their own."""
