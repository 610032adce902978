"""Shorter orders than a published one, by slides and list scheduling."""
