"""Schedules that a search begins with, beside the published orders.

One is taken where it is a schedule of a candidate of the space: its pipeline has what the candidate
leaves open and nothing else (``verify.candidates.chosen``), and the checker accepts the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.planners.looks import SearchOutcome
from bubbleproof.theory.pipelines.plan_space import Candidate
from bubbleproof.theory.pipelines.shaping import ShapedPipeline
from bubbleproof.verify import check
from bubbleproof.verify.candidates.chosen import foreign_choice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownSchedule:
    """A schedule of a candidate."""

    candidate: Candidate
    seen: SearchOutcome


def is_schedule_of(shaped: ShapedPipeline, seen: SearchOutcome) -> bool:
    """Whether it is one of the candidate's choices, and the checker accepts it."""
    if seen.schedule is None or foreign_choice(shaped.pipeline, shaped.allowed, seen.pipeline):
        return False
    return check(seen.pipeline.problem(), seen.schedule).ok
