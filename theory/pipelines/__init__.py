"""Pipelines: what they are made of, how they become problems, and the timing of programs."""
