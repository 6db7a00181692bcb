"""skep's worker measured against a stock hivemind loop and a bare PyTorch loop, like for like."""
