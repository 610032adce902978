"""Tests of ``serve``."""
