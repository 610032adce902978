"""Grids and sentences that explain what a rule found; no verdict is made here."""
