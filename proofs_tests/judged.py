"""What the checker measures of schedules that it has to accept."""

from __future__ import annotations

from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify import check


def accepted(problem: Problem, schedule: Schedule) -> Measures:
    """The measures of a schedule that keeps every rule."""
    verdict = check(problem, schedule)
    assert verdict.ok, str(verdict)
    assert verdict.measured is not None
    return verdict.measured
