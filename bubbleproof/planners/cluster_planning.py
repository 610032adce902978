"""The plan of a model on a cluster: the best deployment, pipeline and schedule together.

1. Every combination is counted (``combinations``): one that a number forbids, or of which a single
   microbatch does not fit, is out with its reason.
2. Every shape that the plan lists (chunks, placements, backwards) of every other one has a bound
   within microseconds (``cluster_bound``); with the step's end it bounds the iteration.
3. By rising bound each shape has its first look: a certified bound, and the best published order.
   When the bounds reach the best iteration, those that are left cannot be shorter.
4. Those whose bound is below the best are searched for anything shorter; what time is left goes to
   the joint planner, on the best one.

An *iteration* is the makespan and the step's end (gradients, weights, optimizer). The answer is
optimal over these choices where no combination's bound is below it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from threading import Event

from bubbleproof.costs.combinations import Combination, Counted
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.cluster_bound import quick_bound
from bubbleproof.planners.known_schedules import Known
from bubbleproof.planners.looks import FirstLook, Look, Seen, first_look, look
from bubbleproof.planners.planned import NOT_LEGAL, Plan, PlanOptions
from bubbleproof.planners.planning import plan
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.theory.pipelines.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, Shaped, shaped

LOOKS_SHARE = 0.5  # of the time, at most, for the first looks
OTHERS_SHARE = 0.5  # of what is left then, for those that are not the best
LEAST_SECONDS = 1.0
SpaceOf = Callable[[Counted], PlanSpace]


@dataclass(kw_only=True, eq=False)
class _Standing:
    """A combination, and what is known of its iteration (ticks)."""

    counted: Counted
    space: PlanSpace | None = None
    shapes: list[tuple[int, Shaped, Candidate]] = field(default_factory=list)
    value: int | None = None
    bound: int = 0
    peak: int | None = None
    plan: Plan | None = None
    known: Known | None = None  # the schedule of ``value``
    reason: str = ""

    @property
    def step_end(self) -> int:
        return 0 if self.counted.numbers is None else self.counted.numbers.step_end


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A combination and what became of it: iterations in ticks, the highest load in bytes."""

    combination: Combination
    status: str
    reason: str
    value: int | None
    bound: int
    peak_memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterPlan:
    """The outcome. ``plan`` is the joint planner's of the ``winner``'s problem.

    ``value`` and ``lower_bound`` are iterations in ticks; ``step_end`` is the part of ``value``
    that follows the pipeline. Without a winner ``least_memory`` bytes of a card let the nearest
    combination (``nearest``) run.
    """

    status: Status
    rows: tuple[Row, ...]
    winner: Counted | None
    plan: Plan | None
    value: int | None
    lower_bound: int
    step_end: int
    least_memory: int | None
    nearest: Combination | None
    seconds: float
    reason: str = ""


def plan_cluster(
    counted: Sequence[Counted],
    space_of: SpaceOf,
    options: PlanOptions | None = None,
    *,
    executor: Executor | None = None,
) -> ClusterPlan:
    """The best of the combinations; ``space_of`` gives the shapes to try of each."""
    return _ClusterPlanning(counted, space_of, options or PlanOptions(), executor).run()


class _ClusterPlanning:
    """The steps of the module's text."""

    def __init__(
        self,
        counted: Sequence[Counted],
        space_of: SpaceOf,
        options: PlanOptions,
        executor: Executor | None,
    ) -> None:
        self.began = time.perf_counter()
        self.options, self.space_of, self.executor = options, space_of, executor
        self.standings = [_Standing(counted=one, reason=one.reason) for one in counted]

    @property
    def left(self) -> float:
        return self.began + self.options.time_limit - time.perf_counter()

    @property
    def best(self) -> _Standing | None:
        found = [one for one in self.standings if one.value is not None]
        return min(found, key=lambda one: (one.value or 0, one.peak or 0), default=None)

    @property
    def open_ones(self) -> list[_Standing]:
        return [one for one in self.standings if not one.reason]

    def run(self) -> ClusterPlan:
        try:
            self._bound()
            self._look_first()
            self._improve()
        except KeyboardInterrupt:
            self.options.stop.set()
        return self._conclude()

    def _bound(self) -> None:
        for one in self.open_ones:
            try:
                one.space = self.space_of(one.counted)
            except ValueError as why:  # such as more microbatches than a problem may have
                one.reason, one.counted = str(why), replace(one.counted, is_legal=False)
                continue
            reasons = []
            for candidate in one.space.candidates():
                try:
                    found = shaped(one.space, candidate)
                except NotLegalError as why:
                    reasons.append(str(why))
                    continue
                one.shapes.append((quick_bound(found.pipeline) + one.step_end, found, candidate))
            if not one.shapes:
                one.reason = f"{reasons[0]}; chunks = {_chunks_that_do(one)} would do"
                one.counted = replace(one.counted, is_legal=False)
                continue
            one.shapes.sort(key=lambda each: each[0])
            one.bound = one.shapes[0][0]

    def _look_first(self) -> None:
        until = self.began + LOOKS_SHARE * self.options.time_limit
        for one in sorted(self.open_ones, key=lambda one: one.bound):
            best = self.best
            is_late = time.perf_counter() > until and best is not None
            if self.options.stop.is_set() or is_late:
                return
            if best is not None and best.value is not None and one.bound >= best.value:
                continue
            self._look_at(one, None if best is None else best.value)
            self._tell(one)

    def _look_at(self, one: _Standing, most: int | None) -> None:
        """First looks at its shapes; its bound is the least of theirs."""
        for place, (bound, shape, _) in enumerate(one.shapes):
            if most is not None and bound >= most:
                continue
            asked = FirstLook(shaped=shape, most=None if most is None else most - one.step_end)
            self._take(one, place, first_look(asked))
            if one.value is not None:
                most = one.value if most is None else min(most, one.value)
        if one.bound == NEVER:
            one.reason = "does not fit: no shape has room for one microbatch"

    def _take(self, one: _Standing, place: int, seen: Seen) -> None:
        """What a look at one of its shapes brought."""
        bound, shape, candidate = one.shapes[place]
        found = NEVER if seen.is_infeasible else seen.bound + one.step_end
        one.shapes[place] = max(bound, found), shape, candidate
        one.bound = min(each[0] for each in one.shapes)
        if seen.value is None or seen.measured is None:
            return
        value, peak = seen.value + one.step_end, max(seen.measured.peak_memory, default=0)
        if one.value is None or (value, peak) < (one.value, one.peak or 0):
            one.value, one.peak = value, peak
            one.known = Known(candidate=candidate, seen=seen)

    def _improve(self) -> None:
        """Search where something shorter may be, then let the joint planner take the best."""
        waiting = sorted(self.open_ones, key=lambda one: one.bound)
        for one in waiting:
            if self.best is not None or (self.left <= 0 and one.plan is not None):
                break
            self._plan(one, max(LEAST_SECONDS, self.left / len(waiting)))
        if self.best is None:
            return
        self._close_others()
        if self.best.plan is None and not self.options.stop.is_set():
            self._plan(self.best, max(LEAST_SECONDS, self.left))

    def _close_others(self) -> None:
        """Of each other combination whose bound is below the best: something shorter, or none."""
        tried: list[_Standing] = []
        while waiting := self._below_best(tried):
            if self.options.stop.is_set() or self.left <= LEAST_SECONDS:
                return
            best = self.best
            assert best is not None
            assert best.value is not None
            share = OTHERS_SHARE * self.left / len(waiting)
            self._close(waiting[0], best.value, max(LEAST_SECONDS, share))
            tried.append(waiting[0])

    def _below_best(self, tried: Sequence[_Standing]) -> list[_Standing]:
        """Those others that may be shorter than the best and were not tried, least bound first."""
        best = self.best
        found = [
            one
            for one in self.open_ones
            if one is not best
            and one not in tried
            and (best is None or best.value is None or one.bound < best.value)
        ]
        return sorted(found, key=lambda one: one.bound)

    def _close(self, one: _Standing, most: int, seconds: float) -> None:
        """Look for an iteration below ``most`` in its shapes that are not bounded by it."""
        places = [place for place, each in enumerate(one.shapes) if each[0] < most]
        options = SolveOptions(
            time_limit=seconds / len(places),
            threads=self.options.threads,
            seed=self.options.seed,
            within=most - one.step_end - 1,
            stop=self.options.stop,
        )
        for place in places:
            self._take(one, place, look(Look(shaped=one.shapes[place][1], options=options)))
        self._tell(one)

    def _plan(self, one: _Standing, seconds: float) -> None:
        assert one.space is not None
        options = replace(self.options, time_limit=seconds, tell=None)
        if self.options.stop.is_set():  # what is known becomes a plan, no more
            options = replace(options, stop=Event())
        known = () if one.known is None else (one.known,)
        found = plan(one.space, options, executor=self.executor, known=known)
        one.plan = found
        if found.value is not None and found.winner is not None:
            one.value = found.value + one.step_end
            one.peak = found.winner.peak_memory
        if found.status is Status.INFEASIBLE:
            one.reason, one.bound = "does not fit: no schedule of it does", NEVER
        else:
            one.bound = max(one.bound, found.lower_bound + one.step_end)
        self._tell(one)

    def _tell(self, one: _Standing) -> None:
        if self.options.tell is not None:
            best = self.best
            found = "no schedule yet" if one.value is None else f"{one.value:,}"
            shown = "none" if best is None else f"{best.value:,}"
            seconds = time.perf_counter() - self.began
            self.options.tell(
                f"{seconds:7.2f} s  {one.counted.combination}: {found}, bound {one.bound:,}; "
                f"best {shown}"
            )

    def _conclude(self) -> ClusterPlan:
        best = self.best
        if best is not None and best.plan is None:  # interrupted: what the first looks found
            self._plan(best, LEAST_SECONDS)
        bounds = [one.bound for one in self.open_ones]
        value = None if best is None else best.value
        nearest = min(
            (one.counted for one in self.standings if one.counted.needed),
            key=lambda one: one.needed,
            default=None,
        )
        return ClusterPlan(
            status=self._status(value, min(bounds, default=NEVER)),
            rows=tuple(self._row(one, best) for one in self.standings),
            winner=None if best is None else best.counted,
            plan=None if best is None else best.plan,
            value=value,
            lower_bound=min(bounds, default=0),
            step_end=0 if best is None else best.step_end,
            least_memory=None if nearest is None or value is not None else nearest.needed,
            nearest=None if nearest is None else nearest.combination,
            seconds=time.perf_counter() - self.began,
            reason="interrupted: the best so far" if self.options.stop.is_set() else "",
        )

    def _status(self, value: int | None, bound: int) -> Status:
        if value is None:
            return Status.UNKNOWN if self.open_ones else Status.INFEASIBLE
        return Status.OPTIMAL if bound >= value else Status.FEASIBLE

    def _row(self, one: _Standing, best: _Standing | None) -> Row:
        return Row(
            combination=one.counted.combination,
            status=_status_of(one),
            reason=_reason(one, best),
            value=one.value,
            bound=one.bound,
            peak_memory=one.peak,
        )


def _chunks_that_do(one: _Standing) -> int:
    """The chunks per rank nearest to those listed that cut the layers evenly."""
    assert one.space is not None
    assert one.space.layers is not None
    wanted = one.space.chunks[0]
    each = one.space.layers.number // one.counted.combination.pipeline
    return min((n for n in range(1, each + 1) if each % n == 0), key=lambda n: abs(n - wanted))


def _status_of(one: _Standing) -> str:
    if not one.counted.is_legal:
        return NOT_LEGAL
    if one.reason:
        return Status.INFEASIBLE.name
    if one.value is None:
        return Status.UNKNOWN.name
    return (Status.OPTIMAL if one.bound >= one.value else Status.FEASIBLE).name


def _reason(one: _Standing, best: _Standing | None) -> str:
    if one.reason:
        return one.reason
    if one is best:
        return "the plan"
    if best is None or best.value is None:
        return "no schedule was found in the time given"
    if one.bound >= best.value:
        return "its bound is not below the plan"
    return "open: its bound is below the plan"
