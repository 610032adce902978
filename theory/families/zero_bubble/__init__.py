"""Families that split backwards: zero bubble, and V-shaped building blocks."""
