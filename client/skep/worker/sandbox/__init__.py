"""The worker's sandbox on Linux: it confines itself before it loads the training stack."""
