"""`skep host`: seed peer, state keeper and file server of a project."""
