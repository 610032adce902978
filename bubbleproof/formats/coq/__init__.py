"""Statements written for Coq."""
