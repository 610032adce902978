"""The search for one pipeline: over all shapes of a space, and all choices within each.

Every candidate is shaped; one that is not legal is out, with the number that does not divide.
Candidates that are one pipeline (a wave of one chunk is a loop) are looked at once. Schedules that
are known of them (``known_schedules``) are taken. After the first looks each candidate whose bound
is below the best makespan has an equal share of what is left, the least bound first, in round after
round: each look ends with a better schedule, or with the proof that the candidate has none, or with
its share.

A candidate leaves only by a bound that the certificate checker accepted, or by a solver's
uncertified bound. The winner has the least makespan, among equals the least peak, then the first
place in the space.

Where none fits, the nearest memory in which a candidate does is that of one microbatch at a time:
whatever their number, they may run one after the other. So the least peak of its pipeline with a
single microbatch, with nothing chosen or with every stage recomputed that may be, is a memory that
works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from bubbleproof.facts import extended
from bubbleproof.parallel import run_all
from bubbleproof.planners.candidate_standing import (
    NOT_LOOKED_AT,
    CandidateStanding,
    legal_pipelines,
)
from bubbleproof.planners.known_schedules import KnownSchedule, is_schedule_of
from bubbleproof.planners.looks import (
    CandidateSearch,
    FirstSearch,
    SearchOutcome,
    first_look,
    look,
    without_look,
)
from bubbleproof.planners.outcome import Ground, Outcome, OutcomeReason
from bubbleproof.planners.plan_search import PlanSearch
from bubbleproof.planners.planned import (
    CandidateResult,
    NoPlanFound,
    Plan,
    PlanOptions,
    SolvedCandidate,
    place_of,
    verdict_of,
)
from bubbleproof.planners.search_budget import SearchBudget
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline
from bubbleproof.verify.candidates.other_cuts import least_of_others

LEAST_SECONDS = 0.5  # for any look
MANY = 100  # candidates: beyond, not each is worth a schedule
FEW = 4  # the same of cuts, which are many and much alike

AnySearch = TypeVar("AnySearch", FirstSearch, CandidateSearch)


class _TimeIsUpError(Exception):
    """Looks side by side end here."""


class PipelineSearch(PlanSearch[Plan | NoPlanFound]):
    """The steps of the module's text; ``known`` are schedules to begin with."""

    def __init__(
        self,
        space: PlanSpace,
        options: PlanOptions,
        budget: SearchBudget,
        executor: Executor | None = None,
        known: Sequence[KnownSchedule] = (),
    ) -> None:
        super().__init__(options, budget, executor)
        self.space, self.known = space, known
        self.illegal: dict[Candidate, NotLegalError] = {}
        self.standings: list[CandidateStanding] = []

    def _begin(self) -> None:
        self.standings, self.illegal = legal_pipelines(self.space)
        for one in self.known:
            for standing in self.standings:
                if one.candidate in standing.candidates and is_schedule_of(
                    standing.shaped, one.found
                ):
                    standing.take_schedule(one.found)

    @property
    def best_value(self) -> int | None:
        """The least makespan found."""
        return min((one.value for one in self.standings if one.value is not None), default=None)

    def _look_first(self) -> None:
        """Beyond so many (``MANY``) those whose bound is not below the best need no schedule; of
        cuts, which stand in the order of what they show, beyond a ``FEW``."""
        layers = self.space.layers
        size = FEW if layers is not None and layers.rule.is_any else MANY
        for first in range(0, len(self.standings), size):
            is_known = first or self.options.orders
            standings = self.standings[first : first + size]
            most = self.best_value if is_known else None
            asked = (self._first_asked(one, most) for one in standings)
            self._side_by_side(first_look, asked, standings)

    def _side_by_side(
        self,
        look_at: Callable[[AnySearch], SearchOutcome],
        asked: Iterable[AnySearch],
        at: Sequence[CandidateStanding],
    ) -> None:
        """The looks by the workers, while there is time; some candidates may have had none."""

        def on_done(index: int, seen: SearchOutcome) -> None:
            self._take(at[index], seen)
            if self.budget.is_spent:
                raise _TimeIsUpError

        if self.budget.left > 0:
            with suppress(_TimeIsUpError):
                run_all(self.executor, look_at, asked, on_done=on_done)

    def _improve(self) -> None:
        """Round after round; where orders are named there is nothing else to look for."""
        while (
            not self.options.orders
            and self.budget.left > 0
            and (open_ones := [one for one in self._open() if self._fits(one)])
        ):
            self._round(open_ones)

    def _open(self) -> list[CandidateStanding]:
        """What may still have something shorter than the best, the least bound first."""
        best = self.best_value
        found = [
            one
            for one in self.standings
            if not one.is_infeasible
            and (best is None or one.least < best)
            and (one.value is None or one.value > one.least)
        ]
        return sorted(found, key=lambda one: (one.least, one.value is None, one.value or 0))

    def _round(self, standings: Sequence[CandidateStanding]) -> None:
        """One look at each; without workers, each knows what those before it have found."""
        if self.executor is not None:
            asked = [self._shared(one, len(standings)) for one in standings]
            self._side_by_side(look, asked, standings)
            return
        for number, one in enumerate(standings):
            if self.budget.left <= 0:
                return
            if one in self._open() and self._fits(one):
                self._take(one, look(self._shared(one, len(standings) - number)))

    def _shared(self, one: CandidateStanding, parts: int) -> CandidateSearch:
        """A look for anything shorter than the best, with one of so many parts of what is left.

        Beside workers each has all of the seconds.
        """
        is_alone = self.executor is None or self.budget.work is not None
        share = self.budget.left / parts if is_alone else self.budget.left
        known = None if one.best is None else one.best.schedule.program
        return self._asked(one, share, self.best_value, least=LEAST_SECONDS, known=known)

    def _take(self, one: CandidateStanding, seen: SearchOutcome) -> None:
        one.take(seen)
        self.budget.spend(seen.work)
        if self.options.tell is None:
            return
        found = "no schedule yet" if one.value is None else f"{one.value}"
        bound = "does not fit" if one.least == NEVER else f"bound {one.least or 'none yet'}"
        self._tell(
            f"{one.candidate}: {found}, {bound}; "
            f"best {self.best_value or 'none yet'}, {len(self._open())} open"
        )

    def _conclude(self) -> Plan | NoPlanFound:
        for one in self.standings:
            if one.bound is NOT_LOOKED_AT:
                one.take(without_look(one.shaped, "no time was left for a look"))
        results = self._results()
        solved = [one for one in results if isinstance(one, SolvedCandidate)]
        others = least_of_others(self.space)
        reason = self.budget.reason(len(self._open()), "candidate")
        none = NoPlanFound(
            space=self.space,
            status=self._unsolved_status(others),
            judged=results,
            others=others,
            least_capacity=None if solved else self._least_capacity(),
            seconds=self.budget.taken,
            reason=reason,
        )
        if not solved:
            return none
        winner = min(solved, key=place_of)
        is_closed = min([others, *(one.least for one in self.standings)]) >= winner.value
        status = Status.OPTIMAL if is_closed else Status.FEASIBLE
        told = {"winner": winner, "verdict": verdict_of(winner)}
        return extended(Plan, none, status=status, **told, seconds=self.budget.taken)

    def _results(self) -> tuple[CandidateResult, ...]:
        """What became of each candidate, in the order of the space."""
        judged = {c: j for one in self.standings for c, j in one.results(self.best_value)}
        for candidate, why in self.illegal.items():
            judged[candidate] = CandidateResult(
                candidate=candidate,
                status=Outcome.NOT_LEGAL,
                reason=OutcomeReason(ground=Ground.NUMBER, text=str(why)),
            )
        return tuple(judged[c] for c in self.space.candidates())

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

    def _unsolved_status(self, others: int) -> Status:
        is_refuted = others == NEVER and all(one.is_infeasible for one in self.standings)
        return Status.INFEASIBLE if is_refuted else Status.UNKNOWN


MOST = 1.0  # seconds, or units of work, for each pipeline; it has one microbatch


def least_capacity(given: ShapedPipeline, how: SolveOptions) -> int | None:
    """Memory units per rank in which the candidate has a schedule; None where none was found."""
    again = None if given.allowed is None else given.allowed.recompute
    plain = _one_microbatch(given.pipeline)
    tried = [plain]
    if again is not None:
        recompute = Recompute(stages=again.stages, kept=again.kept, duration=again.duration)
        tried.append(plain.with_changes(recompute=recompute))
    how = replace(how.at_most(MOST), objective="peak", within=None, threads=1)
    peaks = [solve(pipeline.problem(), how).peak for pipeline in tried]
    return min((peak for peak in peaks if peak is not None), default=None)


def _one_microbatch(pipeline: Pipeline) -> Pipeline:
    """The pipeline with one microbatch (one each way where it runs both ways), memory unlimited."""
    number = min(2, pipeline.num_microbatches) if pipeline.is_bidirectional else 1
    split = pipeline.split_backward
    if not isinstance(split, bool):
        split = tuple(row[:number] for row in split)
    return pipeline.with_changes(num_microbatches=number, split_backward=split, capacity=None)
