"""Theorems: their proofs, their twins, and the schedules they speak of."""
