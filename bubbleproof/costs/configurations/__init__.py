"""Configurations of `transformers` read as the shape of a model: ``hf:config.json``."""
