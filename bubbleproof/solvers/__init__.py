"""Finds schedules and lower bounds. Everything it returns has passed ``verify``."""

from bubbleproof.solvers.engines import ENGINES
from bubbleproof.solvers.result import Proof, Result, Status
from bubbleproof.solvers.solve import OBJECTIVES, SolveOptions, solve

__all__ = ["ENGINES", "OBJECTIVES", "Proof", "Result", "SolveOptions", "Status", "solve"]
