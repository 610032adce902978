"""Which pipeline to run: the best shape, choices and schedule for a memory, with proof."""

from bubbleproof.planners.planned import Judged, Plan, PlanOptions
from bubbleproof.planners.planning import plan

__all__ = ["Judged", "Plan", "PlanOptions", "plan"]
