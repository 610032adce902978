"""Tests of the judge, against a second checker and a simulator written independently of it."""
