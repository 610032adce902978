"""Families that recompute: AdaPipe, and 1F1B with a share made again."""
