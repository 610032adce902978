"""The joint planner: over all shapes of a space, and all choices within each.

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

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
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
    comparison,
    solved_outcome,
    unsolved_outcome,
)
from bubbleproof.planners.planned import CandidateResult, Plan, PlanOptions
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.theory.pipelines.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify import Verdict, check_whole, join
from bubbleproof.verify.required import check_required

LEAST_SECONDS, LEAST_WORK = 0.5, 0.01  # for any look
SAME = "the same pipeline as"
MANY = 100  # candidates: beyond, not each is worth a schedule

AnySearch = TypeVar("AnySearch", FirstSearch, CandidateSearch)


class _TimeIsUpError(Exception):
    """The first looks end here."""


def plan(
    space: PlanSpace,
    options: PlanOptions | None = None,
    *,
    executor: Executor | None = None,
    known: Sequence[KnownSchedule] = (),
) -> Plan:
    """The best pipeline and schedule of the space, and how good it is.

    ``executor`` has workers that look at candidates side by side; without one they are looked at
    here, in turn. ``known`` are schedules to begin with. Raises ``ValueError`` for what a solver
    refuses.
    """
    planning = _Planning(space, options or PlanOptions(), executor)
    planning.known = known
    return planning.run()


@dataclass(kw_only=True, eq=False)
class _Standing:
    """Candidates that are one pipeline, and what is known of it."""

    candidates: list[Candidate]
    shaped: ShapedPipeline
    best: SearchOutcome | None = None  # the look that brought the best schedule
    bound: SearchOutcome | None = None  # the look that brought the best bound
    is_infeasible: bool = False

    @property
    def value(self) -> int | None:
        return None if self.best is None else self.best.value

    @property
    def least(self) -> int:
        return 0 if self.bound is None else self.bound.bound

    def take(self, seen: SearchOutcome) -> None:
        if self.bound is None or seen.bound > self.bound.bound:
            self.bound = seen
        if seen.value is not None and (self.value is None or seen.value < self.value):
            self.best = seen
        self.is_infeasible |= seen.is_infeasible


class _Planning:
    """The steps of the module's text."""

    def __init__(self, space: PlanSpace, options: PlanOptions, executor: Executor | None) -> None:
        self.space, self.options, self.executor = space, options, executor
        self.began, self.done = time.perf_counter(), 0.0  # units of work
        self.illegal: dict[Candidate, str] = {}
        self.standings: list[_Standing] = []
        self.known: Sequence[KnownSchedule] = ()

    def run(self) -> Plan:
        try:
            self._shape()
            self._take_known()
            self._look_first()
            self._improve()
        except KeyboardInterrupt:
            self.options.stop.set()
        return self._conclude()

    def _shape(self) -> None:
        one_of: dict[object, _Standing] = {}
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
                (repr(plain), placement, found.allowed), _Standing(candidates=[], shaped=found)
            )
            known.candidates.append(candidate)
        self.standings = list(one_of.values())

    def _take_known(self) -> None:
        for one in self.known:
            for standing in self.standings:
                if one.candidate in standing.candidates and is_schedule_of(
                    standing.shaped, one.seen
                ):
                    standing.take(one.seen)

    @property
    def seconds(self) -> float:
        """What is left."""
        return self.began + self.options.time_limit - time.perf_counter()

    @property
    def left(self) -> float:
        """Units of work where they are limited, else seconds; nothing after a stop."""
        if self.options.stop.is_set() or self.seconds <= 0:
            return 0.0
        return self.seconds if self.options.work is None else self.options.work - self.done

    @property
    def best(self) -> int | None:
        """The least makespan found."""
        values = [one.value for one in self.standings if one.value is not None]
        return min(values, default=None)

    def _look_first(self) -> None:
        """The first looks; after a stop, and out of time, some candidates have had none.

        Beyond so many (``MANY``) those whose bound is not below the best need no schedule.
        """
        for first in range(0, len(self.standings), MANY):
            standings, most = self.standings[first : first + MANY], self.best if first else None
            asked = (
                FirstSearch(shaped=one.shaped, most=most, seconds=self.seconds) for one in standings
            )
            self._run(first_look, asked, standings)

    def _run(
        self,
        look_at: Callable[[AnySearch], SearchOutcome],
        asked: Iterable[AnySearch],
        at: Sequence[_Standing],
    ) -> None:
        """The looks side by side, while there is time."""

        def on_done(index: int, seen: SearchOutcome) -> None:
            self._take(at[index], seen)
            if self.options.stop.is_set() or self.seconds <= 0:
                raise _TimeIsUpError

        if self.left > 0:
            with suppress(_TimeIsUpError):
                run_all(self.executor, look_at, asked, on_done=on_done)

    def _improve(self) -> None:
        """Round after round, each open candidate with an equal share of what is left."""
        while self.left > 0 and (open_ones := [one for one in self._open() if self._fits(one)]):
            self._look_at(open_ones)

    def _fits(self, one: _Standing) -> bool:
        """Whether a look at it can be prepared in the time left."""
        return preparation(one.shaped.pipeline) <= self.seconds

    def _open(self) -> list[_Standing]:
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

    def _look_at(self, standings: Sequence[_Standing]) -> None:
        """One look at each; without workers, each knows what those before it have found."""
        if self.executor is not None:
            self._run(look, [self._asked(one, len(standings)) for one in standings], standings)
            return
        for number, one in enumerate(standings):
            if self.left <= 0:
                return
            if one in self._open() and self._fits(one):
                self._take(one, look(self._asked(one, len(standings) - number)))

    def _asked(self, one: _Standing, parts: int) -> CandidateSearch:
        """A look for anything that is shorter than the best.

        It has one of so many parts of the work left or, where only seconds are limited and nobody
        else looks meanwhile, of those.
        """
        work, least = None, min(LEAST_SECONDS, self.options.time_limit)
        seconds = max(self.seconds, least)
        if self.options.work is not None:
            work = max(LEAST_WORK, self.left / parts)
        elif self.executor is None:
            share = max(least, self.left / parts, preparation(one.shaped.pipeline))
            seconds = min(seconds, share)
        options = SolveOptions(
            time_limit=seconds,
            work=work,
            threads=self.options.threads,
            seed=self.options.seed,
            within=None if self.best is None else self.best - 1,
            stop=self.options.stop,
        )
        known = None if one.best is None else one.best.schedule
        return CandidateSearch(
            shaped=one.shaped, options=options, known=None if known is None else known.program
        )

    def _take(self, one: _Standing, seen: SearchOutcome) -> None:
        one.take(seen)
        self.done += max(LEAST_WORK, seen.work)
        if self.options.tell is not None:
            found = "no schedule yet" if one.value is None else f"{one.value}"
            bound = "does not fit" if one.least == NEVER else f"bound {one.least or 'none yet'}"
            seconds = time.perf_counter() - self.began
            self.options.tell(
                f"{seconds:7.2f} s  {one.candidates[0]}: {found}, {bound}; "
                f"best {self.best or 'none yet'}, {len(self._open())} open"
            )

    def _conclude(self) -> Plan:
        for one in self.standings:
            if one.bound is None:
                one.take(without_look(one.shaped, "no time was left for a look"))
        judged = {c: j for one in self.standings for c, j in self._judged(one)}
        for candidate, why in self.illegal.items():
            reason = OutcomeReason(ground=Ground.NUMBER, text=why)
            judged[candidate] = CandidateResult(
                candidate=candidate, status=Outcome.NOT_LEGAL, reason=reason
            )
        order = self.space.candidates()
        found = [judged[c] for c in order if judged[c].value is not None]
        winner = min(found, key=lambda j: (j.value or 0, j.peak_memory or 0), default=None)
        status = self._status(winner)
        return Plan(
            space=self.space,
            status=status,
            judged=tuple(judged[c] for c in order),
            winner=winner,
            verdict=None if winner is None else verdict_of(winner),
            least_capacity=None if winner is not None else self._least_capacity(),
            seconds=time.perf_counter() - self.began,
            reason="interrupted: the best so far" if self.options.stop.is_set() else "",
        )

    def _least_capacity(self) -> int | None:
        if self.options.stop.is_set():
            return None
        least = None
        for one in self.standings:
            memory = least_capacity(one.shaped)
            least = memory if least is None or (memory or least) < least else least
            if self.seconds <= 0:
                break
        return least

    def _status(self, winner: CandidateResult | None) -> Status:
        if winner is None:
            is_refuted = all(one.is_infeasible for one in self.standings)
            return Status.INFEASIBLE if is_refuted else Status.UNKNOWN
        value = winner.value
        assert value is not None
        is_closed = all(one.least >= value for one in self.standings)
        return Status.OPTIMAL if is_closed else Status.FEASIBLE

    def _judged(self, one: _Standing) -> list[tuple[Candidate, CandidateResult]]:
        seen, bound = one.best or SearchOutcome(pipeline=one.shaped.pipeline), one.bound
        status = unsolved_outcome(one.least, self.best)
        if one.is_infeasible:
            status = Outcome.INFEASIBLE
        elif one.value is not None:
            status = solved_outcome(one.value, one.least)
        first = one.candidates[0]
        judged = CandidateResult(
            candidate=first,
            status=status,
            reason=_reason(one, self.best),
            pipeline=None if one.best is None else seen.pipeline,
            schedule=seen.schedule,
            measured=seen.measured,
            origin=seen.origin,
            bound=one.least,
            certificate=None if bound is None else bound.certificate,
            word="" if bound is None else bound.word,
        )
        same = OutcomeReason(ground=Ground.SAME_PIPELINE, text=f"{SAME} {first}")
        return [
            (c, judged if c == first else replace(judged, candidate=c, reason=same))
            for c in one.candidates
        ]


def _reason(one: _Standing, best: int | None) -> OutcomeReason:
    """Why the candidate is not the plan, or what its bound rests on."""
    assert one.bound is not None
    by = f" by the word of {one.bound.word}" if one.bound.word else ""
    if one.is_infeasible:
        why = one.bound.reason
        text = f"does not fit{by}: {why}" if why else f"does not fit{by}"
        return OutcomeReason(ground=Ground.ROOM, text=text)
    if not one.bound.is_begun and (best is None or one.least < best):
        return OutcomeReason(ground=Ground.TIME, text=one.bound.reason)
    return comparison(one.value, one.least, best, by)


def verdict_of(winner: CandidateResult) -> Verdict:
    """All rules on the winner's schedule, and that its tasks are what its pipeline requires."""
    assert winner.pipeline is not None
    assert winner.schedule is not None
    problem = winner.pipeline.problem()
    requirement = check_required(winner.pipeline, problem)
    return join([check_whole(problem, winner.schedule), Verdict(decisions=(requirement,))])
