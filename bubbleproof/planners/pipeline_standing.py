"""A pipeline while it is searched: its candidates, its best schedule and its best bound."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bubbleproof.planners.looks import FoundSchedule, SearchOutcome
from bubbleproof.planners.outcome import (
    Ground,
    Outcome,
    OutcomeReason,
    comparison,
    solved_outcome,
    unsolved_outcome,
)
from bubbleproof.planners.planned import CandidateResult, solved_candidate
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline

NOT_LOOKED_AT = SearchOutcome()
SAME = "the same pipeline as"


@dataclass(kw_only=True, eq=False)
class PipelineStanding:
    """Candidates that are one pipeline, and what is known of it."""

    candidates: list[Candidate]
    shaped: ShapedPipeline
    best: FoundSchedule | None = None
    bound: SearchOutcome = NOT_LOOKED_AT  # the look that brought the best bound
    is_infeasible: bool = False

    @property
    def value(self) -> int | None:
        return None if self.best is None else self.best.value

    @property
    def least(self) -> int:
        return self.bound.bound

    def take(self, seen: SearchOutcome) -> None:
        if self.bound is NOT_LOOKED_AT or seen.bound > self.bound.bound:
            self.bound = seen
        if seen.found is not None:
            self.take_schedule(seen.found)
        self.is_infeasible |= seen.is_infeasible

    def take_schedule(self, found: FoundSchedule) -> None:
        if self.best is None or found.value < self.best.value:
            self.best = found

    def results(self, best: int | None) -> list[tuple[Candidate, CandidateResult]]:
        """What became of its candidates, beside a plan of ``best`` ticks."""
        status = unsolved_outcome(self.least, best)
        if self.is_infeasible:
            status = Outcome.INFEASIBLE
        elif self.value is not None:
            status = solved_outcome(self.value, self.least)
        first = self.candidates[0]
        result = CandidateResult(
            candidate=first,
            status=status,
            reason=self._reason(best),
            bound=self.least,
            certificate=self.bound.certificate,
            word=self.bound.word,
        )
        if self.best is not None:
            result = solved_candidate(result, self.best)
        same = OutcomeReason(ground=Ground.SAME_PIPELINE, text=f"{SAME} {first}")
        others = [replace(result, candidate=c, reason=same) for c in self.candidates[1:]]
        return list(zip(self.candidates, [result, *others], strict=True))

    def _reason(self, best: int | None) -> OutcomeReason:
        """Why its candidates are not the plan, or what their bound rests on."""
        by = f" by the word of {self.bound.word}" if self.bound.word else ""
        if self.is_infeasible:
            why = self.bound.reason
            text = f"does not fit{by}: {why}" if why else f"does not fit{by}"
            return OutcomeReason(ground=Ground.ROOM, text=text)
        if not self.bound.is_begun and (best is None or self.least < best):
            return OutcomeReason(ground=Ground.TIME, text=self.bound.reason)
        return comparison(self.value, self.least, best, by)
