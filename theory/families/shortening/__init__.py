"""Shorter orders than a published one, for any number of microbatches."""
