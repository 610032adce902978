"""Which pipeline to run: the best shape, choices and schedule for a memory, with proof."""

from bubbleproof.planners.planned import (
    CandidateResult,
    NoPlanFound,
    Plan,
    PlanOptions,
    SolvedCandidate,
)
from bubbleproof.planners.planning import plan

__all__ = ["CandidateResult", "NoPlanFound", "Plan", "PlanOptions", "SolvedCandidate", "plan"]
