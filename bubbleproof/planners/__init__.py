"""Which pipeline to run: the best shape, choices and schedule for a memory, with proof."""

from bubbleproof.planners.planned import CandidateResult, Plan, PlanOptions
from bubbleproof.planners.planning import plan

__all__ = ["CandidateResult", "Plan", "PlanOptions", "plan"]
