"""Deciding many claims with many workers: the cases are cut into shards, the outcomes joined.

Nothing here knows a single claim or paper: the claims come as a mapping, and from a function that
workers find them by.
"""
