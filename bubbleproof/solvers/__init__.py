"""Finds schedules and lower bounds. Everything it returns has passed ``verify``."""

from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.solve import ENGINES, OBJECTIVES, SolveOptions, solve

__all__ = ["ENGINES", "OBJECTIVES", "Result", "SolveOptions", "Status", "solve"]
