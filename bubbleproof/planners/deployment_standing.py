"""A deployment while it is searched: its candidates, and the best that is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.costs.order_estimates import OrderEstimate, order_estimate
from bubbleproof.planners.candidate_standing import CandidateStanding, legal_candidates
from bubbleproof.planners.cluster_planned import DeploymentRow, solved_deployment
from bubbleproof.planners.known_schedules import KnownSchedule, is_schedule_of
from bubbleproof.planners.looks import FoundSchedule, SearchOutcome
from bubbleproof.planners.outcome import Outcome, solved_outcome, unsolved_outcome
from bubbleproof.planners.planned import NoPlanFound, Plan, place_of
from bubbleproof.planners.search_budget import LateError
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound

NO_ROOM = "does not fit: no shape has room for one microbatch"


@dataclass(kw_only=True, eq=False)
class DeploymentStanding:
    """A deployment, and what is known of its step (ticks).

    ``plan`` is what the search of its pipeline alone found, where there was one; ``reason`` tells
    why it is out, and is empty as long as it is not. Before its candidates are made no step is
    below the ``floor``. ``is_passed_over`` tells that one had no time for its first
    look. ``is_settled``: of the orders that may be run all were timed that may be the best;
    ``is_skipped``: others, which cannot be the best, were not. ``needed`` bytes let the order of
    the least need run, beside what else a card has to hold.
    """

    counted: CombinationCosts
    candidates: list[CandidateStanding] = field(default_factory=list)
    best: KnownSchedule | None = None
    plan: Plan | None = None
    reason: str = ""
    is_legal: bool = True
    is_too_large: bool = False
    floor: int = 0
    is_opened: bool = False
    is_settled: bool = False
    is_passed_over: bool = False
    is_skipped: bool = False
    needed: int | None = None

    def refuse(self, why: str, *, is_too_large: bool) -> None:
        """It has no candidates.

        Parameters
        ----------
        why
            The reason, in words.
        is_too_large
            Whether it is for its size that it has none.
        """
        self.is_legal = bool(self.counted.reason)
        self.is_too_large, self.reason = is_too_large, self.counted.reason or why

    def open(self, space: PlanSpace, until: float = inf) -> None:
        """Make its candidates, those of its space, the least bound first.

        Parameters
        ----------
        until
            A moment of ``time.perf_counter``, after which it stays as it is.
        """
        try:
            found, reasons = legal_candidates(space, self.step_end, until)
        except LateError:
            return
        self.is_opened, self.candidates = True, sorted(found, key=lambda one: one.least)
        if not found:
            large = [why for why in reasons.values() if why.is_too_large]
            self.is_too_large, self.reason = bool(large), str([*large, *reasons.values()][0])
            self.is_legal = False
            return
        self.rule_out()

    def rule_out(self) -> None:
        """Where no candidate has room."""
        if self.bound == NEVER:
            self.reason = self.counted.reason or NO_ROOM

    @property
    def estimate(self) -> OrderEstimate:
        """What the order that is likely to be the best takes and needs."""
        return order_estimate(self.counted.numbers, microbatches=self.counted.microbatches)

    @property
    def step_end(self) -> int:
        """What follows the pipeline in every step, in ticks."""
        return self.counted.numbers.step_end

    @property
    def has_plan(self) -> bool:
        """Whether the search of its pipeline alone ended with the best that is known."""
        if self.plan is None or self.best is None:
            return False
        return self.plan.value + self.step_end == self.best.value

    @property
    def is_seen(self) -> bool:
        """Whether each of its candidates had its turn."""
        return all(one.is_looked_at for one in self.candidates)

    @property
    def bound(self) -> int:
        """No step takes less; ``NEVER`` where nothing fits."""
        return min((one.least for one in self.candidates), default=self.floor)

    @property
    def bundle(self) -> tuple[CandidateBound, ...]:
        """What shows the bound of each of its candidates."""
        return tuple(proof for one in self.candidates for proof in one.proofs)

    def take(self, one: CandidateStanding, seen: SearchOutcome) -> None:
        """What a look at one of its candidates brought."""
        one.take(seen)
        if seen.needed is not None:
            self.needed = seen.needed if self.needed is None else min(seen.needed, self.needed)
        if seen.found is not None:
            step = self._step(one.candidate, seen.found)
            if self.best is None or place_of(step) < place_of(self.best):
                self.best = step

    def begin_with(self, known: KnownSchedule) -> None:
        """Take a schedule of one of its candidates, where it is one."""
        for one in self.candidates:
            if one.candidate == known.candidate and is_schedule_of(one.shaped, known.found):
                self.take(one, SearchOutcome(found=known.found))

    def _step(self, candidate: Candidate, found: FoundSchedule) -> KnownSchedule:
        return KnownSchedule(candidate=candidate, found=found, step_end=self.step_end)

    @property
    def is_unfit(self) -> bool:
        """Whether all its orders that may be run were timed, and none fits."""
        is_timed = self.is_settled and not self.is_skipped
        return is_timed and self.best is None and self.needed is not None

    @property
    def on_card(self) -> int:
        """Bytes of a card with which one of its orders runs; else one microbatch alone."""
        if self.needed is None or self.best is not None:
            return self.counted.needed
        return self.needed + self.counted.numbers.beside

    @property
    def unfit(self) -> str:
        """What its orders lack."""
        numbers, needed = self.counted.numbers, self.on_card
        memory = numbers.capacity + numbers.beside
        least = f"the least needs {needed / 2**30:.2f} of {memory / 2**30:.2f} GiB of a card"
        return f"its orders do not fit: {least}, {(needed - memory) / 2**20:,.1f} MiB more"

    def take_plan(self, found: Plan | NoPlanFound) -> None:
        """What the search of its pipeline alone brought."""
        if isinstance(found, Plan):
            self.best, self.plan = self._step(found.winner.candidate, found.winner.found), found
        of = {one.candidate: one for one in found.judged}
        for one in self.candidates:
            judged = of[one.candidate]
            one.take(
                SearchOutcome(bound=judged.bound, certificate=judged.certificate, word=judged.word)
            )
        if found.status is Status.INFEASIBLE:
            self.reason = "does not fit: no schedule of it does"

    def status(self, best: DeploymentStanding | None) -> Outcome:
        """What became of this one alone."""
        if self.is_too_large:
            return Outcome.TOO_LARGE
        if not self.is_legal:
            return Outcome.NOT_LEGAL
        if self.reason or self.is_unfit:
            return Outcome.INFEASIBLE
        if self.best is None:
            return unsolved_outcome(self.bound, value_of(best))
        return solved_outcome(self.best.value, self.bound)

    def told(self, best: DeploymentStanding | None) -> str:
        """Why it is not the plan, or that it is."""
        value = value_of(best)
        if self.reason:
            return self.reason
        if self is best:
            return "the plan"
        if self.is_unfit:
            return self.unfit
        if value is None:
            return "no schedule was found in the time given"
        if self.bound >= value:
            return "bound not below the plan"
        if self.is_settled:
            return "its orders are longer, or do not fit"
        return "open: bound below the plan"

    def row(self, best: DeploymentStanding | None) -> DeploymentRow:
        """What became of it, beside the best."""
        row = DeploymentRow(
            combination=self.counted.combination,
            status=self.status(best),
            reason=self.told(best),
            bound=self.bound,
            on_card=self.on_card,
        )
        if self.best is None:
            return row
        return solved_deployment(
            row,
            value=self.best.value,
            peak_memory=self.best.peak_memory,
            candidate=self.best.candidate,
            beside=self.counted.numbers.beside,
        )


def value_of(best: DeploymentStanding | None) -> int | None:
    """The step of the best so far."""
    return None if best is None or best.best is None else best.best.value
