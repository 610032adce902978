"""Files that start from a model, a cluster or hardware."""
