"""Finds schedules and lower bounds. Everything it returns has passed ``verify``."""

from bubbleproof.solvers.engines import ENGINES
from bubbleproof.solvers.options import OBJECTIVES, SolveOptions
from bubbleproof.solvers.result import Proof, Result, Status
from bubbleproof.solvers.solve import solve

__all__ = ["ENGINES", "OBJECTIVES", "Proof", "Result", "SolveOptions", "Status", "solve"]
