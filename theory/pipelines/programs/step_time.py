"""How long a step takes when everything is counted: links, hosts and NICs beside the ranks."""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


def step_ticks(problem: Problem, schedule: Schedule) -> int:
    """From the first start to the last end of all resources, hosts and NICs included."""
    ticks = problem.duration[problem.locate(schedule.program.actions)]
    return int((schedule.start + ticks).max() - schedule.start.min())
