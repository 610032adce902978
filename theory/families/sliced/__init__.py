"""Families that slice samples: SVPP and TeraPipe."""
