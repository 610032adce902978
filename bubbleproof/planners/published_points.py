"""Published schedules on the user's work, as points of makespan against peak memory."""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.formats.comparison import comparison_pipeline
from bubbleproof.solvers.pareto_front import Front
from bubbleproof.theory.families import Family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPoint:
    """A published schedule on the user's work, or why there is none."""

    name: str
    peak: int = 0
    makespan: int = 0
    refusal: str | None = None

    def above(self, front: Front, capacity: int | None) -> str:
        """How many ticks the front saves at this peak, or what the point has that it has not.

        Parameters
        ----------
        capacity
            Of a rank, in units of memory.
        """
        spans = [
            other.makespan
            for other in front.points
            if other.peak is not None and other.peak <= self.peak and other.makespan is not None
        ]
        if not spans:
            return "below every peak of the front (another shape)"
        saved = self.makespan - min(spans)
        if saved >= 0:
            return str(saved)
        is_over = capacity is not None and self.peak > capacity
        return f"{saved} ({'beyond the capacity' if is_over else 'another shape'})"


def published_point(name: str, family: Family, pipeline: Pipeline) -> PublishedPoint:
    """A family on the user's work, with no limit on memory.

    Parameters
    ----------
    name
        Of the family, as it is shown.
    """
    try:
        fitted = comparison_pipeline(pipeline, family).with_changes(capacity=None)
        fitted = family.prepared(fitted)
        problem = fitted.problem()
        verdict = check(problem, family.schedule(fitted, problem))
    except ValueError as error:
        return PublishedPoint(name=name, refusal=str(error))
    if not verdict.ok or verdict.measured is None:
        why = "its order breaks " + ", ".join(rule.name.lower() for rule in verdict.broken)
        return PublishedPoint(name=name, refusal=why)
    peak = max(verdict.measured.peak_memory, default=0)
    return PublishedPoint(name=name, peak=peak, makespan=verdict.measured.makespan)


def common_capacity(problem: Problem) -> int | None:
    """What every rank's memory may hold, where that is one number."""
    caps = {store.capacity for store in problem.stores[: problem.num_ranks]}
    return caps.pop() if len(caps) == 1 else None
