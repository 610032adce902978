"""Theorems about schedules, for all p and m and where they can be all durations.

Each is a list of obligations, whose negations Z3 refutes. ``theorem_library`` lists them,
``prover`` proves them. Importing this room does not load Z3; proving does. The closed forms here
are written down a second time, apart from ``theory.families``, and the tests compare the two tick
for tick.
"""

from __future__ import annotations

from bubbleproof.papers.theorems.theorem import Obligation, ProofVerdict, Theorem, TheoremProof

__all__ = ["Obligation", "ProofVerdict", "Theorem", "TheoremProof"]
