"""Programs that measure: how fast the checker is, and what it finds in PyTorch's own tables."""
