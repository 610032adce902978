"""Finds schedules and lower bounds. Everything it returns has passed ``verify``."""

from bubbleproof.solvers.choices.solving_choices import ChoiceResult, solve_choices
from bubbleproof.solvers.engines import ENGINES
from bubbleproof.solvers.options import OBJECTIVES, SolveOptions
from bubbleproof.solvers.result import MeasuredSchedule, ProofOrigin, Result, Status
from bubbleproof.solvers.solving import solve

__all__ = [
    "ENGINES",
    "OBJECTIVES",
    "ChoiceResult",
    "MeasuredSchedule",
    "ProofOrigin",
    "Result",
    "SolveOptions",
    "Status",
    "solve",
    "solve_choices",
]

if __name__ == "solvers":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.solvers: solvers/ is one with it")
