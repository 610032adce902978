"""The search for one pipeline: over all shapes of a space, and all choices within each.

1. Every candidate is shaped; one that is not legal is out, with the number that does not divide.
   Candidates that are one pipeline (a wave of one chunk is a loop) are looked at once. Schedules
   that are known of them (``known_schedules``) are taken.
2. A first look at each: its certified bound and the best published order, in milliseconds.
3. Those whose bound is below the best makespan so far are solved, the least bound first, for
   anything shorter than that: each look ends with a better schedule, or with the proof that the
   candidate has none, or with its share of the time that is left.

A candidate leaves only by a bound that the certificate checker accepted or an engine's word. The
winner has the least makespan, among equals the least peak, then the first place in the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import TypeVar

from bubbleproof.parallel import run_all
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.known_schedules import KnownSchedule, is_schedule_of
from bubbleproof.planners.least_memory import least_capacity
from bubbleproof.planners.looks import (
    CandidateSearch,
    FirstSearch,
    SearchOutcome,
    first_look,
    look,
    preparation,
    without_look,
)
from bubbleproof.planners.outcome import (
    Ground,
    Outcome,
    OutcomeReason,
)
from bubbleproof.planners.pipeline_standing import NOT_LOOKED_AT, PipelineStanding
from bubbleproof.planners.planned import (
    CandidateResult,
    NoPlanFound,
    Plan,
    PlanOptions,
    SolvedCandidate,
    place_of,
    verdict_of,
)
from bubbleproof.planners.search_budget import LEAST_WORK, SearchBudget
from bubbleproof.solvers import Status
from bubbleproof.solvers.search_state import in_turn
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

LEAST_SECONDS = 0.5  # for any look
MANY = 100  # candidates: beyond, not each is worth a schedule

AnySearch = TypeVar("AnySearch", FirstSearch, CandidateSearch)


class _TimeIsUpError(Exception):
    """The first looks end here."""


class PipelineSearch:
    """The steps of the module's text, within a budget.

    ``executor`` has workers that look at candidates side by side; without one they are looked at
    here, in turn. ``known`` are schedules to begin with.
    """

    def __init__(
        self,
        space: PlanSpace,
        options: PlanOptions,
        budget: SearchBudget,
        executor: Executor | None = None,
        known: Sequence[KnownSchedule] = (),
    ) -> None:
        self.space, self.options, self.executor = space, options, executor
        self.budget, self.known = budget, known
        self.illegal: dict[Candidate, str] = {}
        self.standings: list[PipelineStanding] = []

    def run(self) -> Plan | NoPlanFound:
        steps = self._shape, self._take_known, self._look_first, self._improve
        in_turn(steps, self.options.stop)
        return self._conclude()

    def _shape(self) -> None:
        one_of: dict[object, PipelineStanding] = {}
        for candidate in self.space.candidates():
            try:
                found = shaped(self.space, candidate)
            except NotLegalError as why:
                self.illegal[candidate] = str(why)
                continue
            is_double = found.pipeline.is_bidirectional
            placement = "both ways" if is_double else found.pipeline.stage_ranks
            plain = found.pipeline.with_changes(placement="loop")
            known = one_of.setdefault(
                (repr(plain), placement, found.allowed),
                PipelineStanding(candidates=[], shaped=found),
            )
            known.candidates.append(candidate)
        self.standings = list(one_of.values())

    def _take_known(self) -> None:
        for one in self.known:
            for standing in self.standings:
                if one.candidate in standing.candidates and is_schedule_of(
                    standing.shaped, one.found
                ):
                    standing.take_schedule(one.found)

    @property
    def best(self) -> int | None:
        """The least makespan found."""
        values = [one.value for one in self.standings if one.value is not None]
        return min(values, default=None)

    def _look_first(self) -> None:
        """The first looks; after a stop, and out of time, some candidates have had none.

        Beyond so many (``MANY``) those whose bound is not below the best need no schedule.
        """
        orders = self.options.orders
        for first in range(0, len(self.standings), MANY):
            is_known = first or orders
            standings, most = self.standings[first : first + MANY], self.best if is_known else None
            asked = (
                FirstSearch(
                    shaped=one.shaped, most=most, seconds=self.budget.preparable, orders=orders
                )
                for one in standings
            )
            self._run(first_look, asked, standings)

    def _run(
        self,
        look_at: Callable[[AnySearch], SearchOutcome],
        asked: Iterable[AnySearch],
        at: Sequence[PipelineStanding],
    ) -> None:
        """The looks side by side, while there is time."""

        def on_done(index: int, seen: SearchOutcome) -> None:
            self._take(at[index], seen)
            if self.budget.is_spent:
                raise _TimeIsUpError

        if self.budget.left > 0:
            with suppress(_TimeIsUpError):
                run_all(self.executor, look_at, asked, on_done=on_done)

    def _improve(self) -> None:
        """Round after round, each open candidate with an equal share of what is left.

        Where orders are named there is nothing else to look for.
        """
        while (
            not self.options.orders
            and self.budget.left > 0
            and (open_ones := [one for one in self._open() if self._fits(one)])
        ):
            self._look_at(open_ones)

    def _fits(self, one: PipelineStanding) -> bool:
        """Whether a look at it can be prepared in the time left."""
        return preparation(one.shaped.pipeline) <= self.budget.preparable

    def _open(self) -> list[PipelineStanding]:
        """What may still have something shorter than the best, the least bound first."""
        best = self.best
        found = [
            one
            for one in self.standings
            if not one.is_infeasible
            and (best is None or one.least < best)
            and (one.value is None or one.value > one.least)
        ]
        return sorted(found, key=lambda one: (one.least, one.value is None, one.value or 0))

    def _look_at(self, standings: Sequence[PipelineStanding]) -> None:
        """One look at each; without workers, each knows what those before it have found."""
        if self.executor is not None:
            self._run(look, [self._asked(one, len(standings)) for one in standings], standings)
            return
        for number, one in enumerate(standings):
            if self.budget.left <= 0:
                return
            if one in self._open() and self._fits(one):
                self._take(one, look(self._asked(one, len(standings) - number)))

    def _asked(self, one: PipelineStanding, parts: int) -> CandidateSearch:
        """A look for anything that is shorter than the best.

        It has one of so many parts of the work left or, where only seconds are limited and nobody
        else looks meanwhile, of those.
        """
        work, least = None, min(LEAST_SECONDS, self.options.time_limit)
        seconds = max(self.budget.seconds, least)
        if self.budget.work is not None:
            work = max(LEAST_WORK, self.budget.left / parts)
        elif self.executor is None:
            share = max(least, self.budget.left / parts, preparation(one.shaped.pipeline))
            seconds = min(seconds, share)
        within = None if self.best is None else self.best - 1
        options = self.options.solving(seconds, work, within)
        known = None if one.best is None else one.best.schedule.program
        return CandidateSearch(shaped=one.shaped, options=options, known=known)

    def _take(self, one: PipelineStanding, seen: SearchOutcome) -> None:
        one.take(seen)
        self.budget.spend(seen.work)
        if self.options.tell is not None:
            found = "no schedule yet" if one.value is None else f"{one.value}"
            bound = "does not fit" if one.least == NEVER else f"bound {one.least or 'none yet'}"
            self.options.tell(
                f"{self.budget.taken:7.2f} s  {one.candidates[0]}: {found}, {bound}; "
                f"best {self.best or 'none yet'}, {len(self._open())} open"
            )

    def _conclude(self) -> Plan | NoPlanFound:
        for one in self.standings:
            if one.bound is NOT_LOOKED_AT:
                one.take(without_look(one.shaped, "no time was left for a look"))
        judged = {c: j for one in self.standings for c, j in one.results(self.best)}
        for candidate, why in self.illegal.items():
            judged[candidate] = CandidateResult(
                candidate=candidate,
                status=Outcome.NOT_LEGAL,
                reason=OutcomeReason(ground=Ground.NUMBER, text=why),
            )
        order = self.space.candidates()
        results = tuple(judged[c] for c in order)
        solved = [one for one in results if isinstance(one, SolvedCandidate)]
        reason = self.budget.reason(len(self._open()), "candidate")
        if not solved:
            return NoPlanFound(
                space=self.space,
                status=self._unsolved_status(),
                judged=results,
                least_capacity=self._least_capacity(),
                seconds=self.budget.taken,
                reason=reason,
            )
        winner = min(solved, key=place_of)
        is_closed = all(one.least >= winner.value for one in self.standings)
        return Plan(
            space=self.space,
            status=Status.OPTIMAL if is_closed else Status.FEASIBLE,
            judged=results,
            winner=winner,
            verdict=verdict_of(winner),
            seconds=self.budget.taken,
            reason=reason,
        )

    def _least_capacity(self) -> int | None:
        if self.options.stop.is_set():
            return None
        least, how = None, self.options.solving(self.options.time_limit, self.options.work)
        for one in self.standings:
            memory = least_capacity(one.shaped, how)
            least = memory if least is None or (memory or least) < least else least
            if self.budget.seconds <= 0:
                break
        return least

    def _unsolved_status(self) -> Status:
        is_refuted = all(one.is_infeasible for one in self.standings)
        return Status.INFEASIBLE if is_refuted else Status.UNKNOWN
