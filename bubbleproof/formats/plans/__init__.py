"""Plans and their proofs in files."""
