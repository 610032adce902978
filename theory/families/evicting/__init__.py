"""Families that evict activations: BPipe."""
