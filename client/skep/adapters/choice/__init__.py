"""Which sensors fit this computer and this session."""
