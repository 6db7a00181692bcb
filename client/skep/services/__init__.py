"""What front ends ask of skep beside the engine: diagnosis, updates, summaries."""
