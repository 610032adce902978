"""Schedules as people hold them in a program: lists per rank, tables, torch's schedule objects."""
