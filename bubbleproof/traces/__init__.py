"""Traces of real runs, read into the schedule as it ran and why it was idle."""
