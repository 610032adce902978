"""Why no schedule is shorter: deductions, their proofs, and proofs made short."""
