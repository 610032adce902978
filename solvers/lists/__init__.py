"""Schedules listed in milliseconds, without an engine; orders that repeat, and are lengthened."""
