"""Converting an author's files to shards and an index."""
