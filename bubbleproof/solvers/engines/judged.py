"""What an engine's start times are worth, by the checker's judgement."""

from __future__ import annotations

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.verify.check import check


def value_of(encoding: Encoding, start: Ints) -> int | None:
    """The objective's value in ticks, or None where the checker refuses the schedule."""
    verdict = check(encoding.problem, schedule_of_starts(encoding.problem, start))
    if not verdict.ok or verdict.measured is None:
        return None
    is_makespan = encoding.objective == "makespan"
    return verdict.measured.makespan if is_makespan else verdict.measured.span_idle
