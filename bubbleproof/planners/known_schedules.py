"""Schedules that a search begins with, beside the published orders.

One is taken where it is a schedule of a candidate of the space: its pipeline has what the candidate
leaves open and nothing else (``verify.candidates.chosen``), and the checker accepts the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.planners.looks import FoundSchedule
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify import check
from bubbleproof.verify.candidates.chosen import foreign_choice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownSchedule:
    """A schedule of a candidate, and the ticks that its step has after the pipeline."""

    candidate: Candidate
    found: FoundSchedule
    step_end: int = 0

    @property
    def value(self) -> int:
        """What the step takes, in ticks."""
        return self.found.value + self.step_end

    @property
    def peak_memory(self) -> int:
        """The highest load of any rank's memory."""
        return self.found.peak_memory


def is_schedule_of(shaped: ShapedPipeline, found: FoundSchedule) -> bool:
    """Whether it is one of the candidate's choices, and the checker accepts it."""
    if foreign_choice(shaped.pipeline, shaped.allowed, found.pipeline):
        return False
    return check(found.pipeline.problem(), found.schedule).ok
