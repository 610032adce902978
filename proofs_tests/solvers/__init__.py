"""Tests of bounds, list scheduling and engines against exhaustive search and known optima."""
