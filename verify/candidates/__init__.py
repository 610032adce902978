"""Bounds over choices and shapes: what holds whatever is chosen, and bundles of such proofs."""
