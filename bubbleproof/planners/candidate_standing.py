"""A candidate while it is searched: a shape of a pipeline, of a deployment or of none.

What follows the pipeline in every step of a deployment (gradients, weights, optimizer) takes
``step_end`` ticks, and nothing where there is no deployment. A value and a bound are those of the
whole step: what the pipeline takes, and its end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf

from bubbleproof.facts import extended
from bubbleproof.planners.looks import FoundSchedule, SearchOutcome, without_look
from bubbleproof.planners.outcome import (
    Ground,
    Outcome,
    OutcomeReason,
    comparison,
    solved_outcome,
    unsolved_outcome,
)
from bubbleproof.planners.planned import CandidateResult, solved_candidate
from bubbleproof.planners.search_budget import LateError
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify.candidates.bundle import CandidateBound

NOT_LOOKED_AT = SearchOutcome()
SAME = "the same pipeline as"


@dataclass(kw_only=True, eq=False)
class CandidateStanding:
    """Candidates that are one pipeline, and what is known of it.

    ``bound`` is the look that brought the best bound, or what the numbers of one rank show. It
    ``is_looked_at`` once it had its first look, or needs none.
    """

    candidates: list[Candidate]
    shaped: ShapedPipeline
    step_end: int = 0
    best: FoundSchedule | None = None
    bound: SearchOutcome = NOT_LOOKED_AT
    is_infeasible: bool = False
    is_looked_at: bool = False

    @classmethod
    def bounded(
        cls, candidate: Candidate, found: ShapedPipeline, step_end: int = 0
    ) -> CandidateStanding:
        """With the bound of microseconds, which a first look that shows no more leaves in place.

        A search of very many candidates begins so. One that looks at each of a few anyway begins
        without: the proof of a bundle is then that of the look.

        Parameters
        ----------
        step_end
            Ticks that the step takes after the pipeline has ended.
        """
        quick = without_look(found, "")
        return cls(candidates=[candidate], shaped=found, step_end=step_end, bound=quick)

    @property
    def candidate(self) -> Candidate:
        """The first of them."""
        return self.candidates[0]

    @property
    def value(self) -> int | None:
        """What a step takes by the best schedule known."""
        return None if self.best is None else self.best.value + self.step_end

    @property
    def least(self) -> int:
        """No step takes less; ``NEVER`` where nothing fits."""
        return min(NEVER, self.bound.bound + self.step_end)

    @property
    def proofs(self) -> list[CandidateBound]:
        """The entries in the bundle of proofs."""
        return [extended(CandidateBound, self.bound, candidate=one) for one in self.candidates]

    def take(self, seen: SearchOutcome) -> None:
        """What a look brought: of equal bounds the one that is shown counts, or the first."""
        known = self.bound
        is_shown = seen.certificate is not None and known.certificate is None
        is_better = (seen.bound, is_shown) > (known.bound, False)
        if known is NOT_LOOKED_AT or is_better:
            self.bound = seen
        if seen.found is not None:
            self.take_schedule(seen.found)
        self.is_infeasible |= seen.is_infeasible

    def take_schedule(self, found: FoundSchedule) -> None:
        """A schedule of it: the shorter, of equals the first."""
        if self.best is None or found.value < self.best.value:
            self.best = found

    def results(self, best: int | None) -> list[tuple[Candidate, CandidateResult]]:
        """What became of its candidates, beside a plan of ``best`` ticks.

        Parameters
        ----------
        best
            Ticks of the plan; None where there is none.
        """
        status = unsolved_outcome(self.least, best)
        if self.is_infeasible:
            status = Outcome.INFEASIBLE
        elif self.value is not None:
            status = solved_outcome(self.value, self.least)
        result = CandidateResult(
            candidate=self.candidate,
            status=status,
            reason=self._reason(best),
            bound=self.least,
            certificate=self.bound.certificate,
            word=self.bound.word,
        )
        if self.best is not None:
            result = solved_candidate(result, self.best)
        same = OutcomeReason(ground=Ground.SAME_PIPELINE, text=f"{SAME} {self.candidate}")
        others = [replace(result, candidate=c, reason=same) for c in self.candidates[1:]]
        return list(zip(self.candidates, [result, *others], strict=True))

    def _reason(self, best: int | None) -> OutcomeReason:
        """Why its candidates are not the plan, or what their bound rests on."""
        by = f" by an uncertified bound of {self.bound.word}" if self.bound.word else ""
        if self.is_infeasible:
            why = self.bound.reason
            text = f"does not fit{by}: {why}" if why else f"does not fit{by}"
            return OutcomeReason(ground=Ground.ROOM, text=text)
        if not self.bound.is_begun and (best is None or self.least < best):
            return OutcomeReason(ground=Ground.TIME, text=self.bound.reason)
        return comparison(self.value, self.least, best, by)


def legal_candidates(
    space: PlanSpace, step_end: int = 0, until: float = inf
) -> tuple[list[CandidateStanding], dict[Candidate, NotLegalError]]:
    """Those of a space with their quick bounds, and why others are not legal.

    Parameters
    ----------
    step_end
        Ticks that the step takes after the pipeline has ended.
    until
        A moment of ``time.perf_counter``.

    Raises
    ------
    LateError
        Where it is past before all have their bounds.
    """
    legal, reasons = _shaped(space)
    standings = []
    for one, found in legal:
        if time.perf_counter() > until:
            raise LateError
        standings.append(CandidateStanding.bounded(one, found, step_end))
    return standings, reasons


def legal_pipelines(
    space: PlanSpace,
) -> tuple[list[CandidateStanding], dict[Candidate, NotLegalError]]:
    """Each pipeline of a space once, and why candidates are not legal."""
    legal, reasons = _shaped(space)
    one_of: dict[object, CandidateStanding] = {}
    for candidate, found in legal:
        is_double = found.pipeline.is_bidirectional
        placement = "both ways" if is_double else found.pipeline.stage_ranks
        key = repr(found.pipeline.with_changes(placement="loop")), placement, found.allowed
        known = one_of.setdefault(key, CandidateStanding(candidates=[], shaped=found))
        known.candidates.append(candidate)
    return list(one_of.values()), reasons


def _shaped(
    space: PlanSpace,
) -> tuple[list[tuple[Candidate, ShapedPipeline]], dict[Candidate, NotLegalError]]:
    legal, reasons = [], {}
    for candidate in space.candidates():
        try:
            legal.append((candidate, shaped(space, candidate)))
        except NotLegalError as why:
            reasons[candidate] = why
    return legal, reasons
