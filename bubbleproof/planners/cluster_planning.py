"""The plan of a model on a cluster: the best deployment, pipeline and schedule together.

1. Every combination is counted (``combinations``): one that a number forbids, or of which a single
   microbatch does not fit, is out with its reason.
2. Every shape that the plan lists (chunks, placements, backwards) of every other one has a bound
   within microseconds (``cluster_bound``), or no room; with the step's end it bounds the iteration.
3. By rising bound each shape has its first look: a certified bound, and the best published order.
   When the bounds reach the best iteration, those that are left cannot be shorter.
4. Those whose bound is below the best are searched for anything shorter; what time is left goes to
   the joint planner, on the best one.

An *iteration* is the makespan and the step's end (gradients, weights, optimizer). The answer is
optimal over these choices where no combination's bound is below it.

Where ``work`` is limited, steps 3 and 4 share units of it in place of seconds, so that the answer
is the same in every run that does not meet the time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from threading import Event

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.cluster_planned import (
    ClusterPlan,
    DeploymentProgress,
    DeploymentRow,
    ShapeBound,
    legal_shapes,
)
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import (
    CandidateSearch,
    FirstSearch,
    SearchOutcome,
    first_look,
    look,
    preparation,
)
from bubbleproof.planners.planned import PlanOptions
from bubbleproof.planners.planning import plan
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.theory.pipelines.limits import OversizeError
from bubbleproof.theory.pipelines.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound

LOOKS_SHARE = 0.5  # of the time, at most, for the first looks
OTHERS_SHARE = 0.5  # of what is left then, for those that are not the best
LEAST_SECONDS, LEAST_WORK = 1.0, 0.01  # for any search
NO_ROOM = "does not fit: no shape has room for one microbatch"
SpaceOf = Callable[[CombinationCosts], PlanSpace]


def plan_cluster(
    counted: Sequence[CombinationCosts],
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
        counted: Sequence[CombinationCosts],
        space_of: SpaceOf,
        options: PlanOptions,
        executor: Executor | None,
    ) -> None:
        self.began, self.done = time.perf_counter(), 0.0  # units of work
        self.options, self.space_of, self.executor = options, space_of, executor
        self.standings = [
            DeploymentProgress(counted=one, reason="" if one.is_legal else one.reason)
            for one in counted
        ]

    @property
    def seconds(self) -> float:
        """What is left of them."""
        return self.began + self.options.time_limit - time.perf_counter()

    @property
    def left(self) -> float:
        """Units of work where they are limited, else seconds."""
        if self.options.work is None or self.seconds <= 0:
            return self.seconds
        return self.options.work - self.done

    @property
    def all_of_it(self) -> float:
        """Of which ``left`` is a part."""
        return self.options.time_limit if self.options.work is None else self.options.work

    @property
    def least(self) -> float:
        """For any search, in the same units."""
        return LEAST_SECONDS if self.options.work is None else LEAST_WORK

    @property
    def best(self) -> DeploymentProgress | None:
        found = [one for one in self.standings if one.value is not None]
        return min(found, key=lambda one: (one.value or 0, one.peak or 0), default=None)

    @property
    def open_ones(self) -> list[DeploymentProgress]:
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
                one.is_too_large = isinstance(why, OversizeError) and not one.counted.reason
                if not one.counted.reason:
                    one.counted = replace(one.counted, is_legal=False)
                one.reason = one.counted.reason or str(why)
                continue
            one.shapes, reasons = legal_shapes(one.space)
            if not one.shapes:
                large = [why for why in reasons if why.is_too_large]
                one.is_too_large = bool(large)
                one.reason = str((large or reasons)[0])
                one.counted = replace(one.counted, is_legal=False)
                continue
            one.shapes.sort(key=one.bound_of)
            if one.bound == NEVER:
                one.reason = one.counted.reason or NO_ROOM

    def _look_first(self) -> None:
        for one in sorted(self.open_ones, key=lambda one: one.bound):
            best = self.best
            used = self.all_of_it - self.left
            is_late = self.left <= 0 or (used > LOOKS_SHARE * self.all_of_it and best is not None)
            if self.options.stop.is_set() or is_late:
                return
            if best is not None and best.value is not None and one.bound >= best.value:
                continue
            self._look_at(one, None if best is None else best.value)
            self._tell(one)

    def _look_at(self, one: DeploymentProgress, most: int | None) -> None:
        """First looks at its shapes; its bound is the least of theirs."""
        for shape in one.shapes:
            if most is not None and one.bound_of(shape) >= most:
                continue
            within = None if most is None else most - one.step_end
            asked = FirstSearch(shaped=shape.shaped, most=within, seconds=max(0.0, self.seconds))
            self._take(one, shape, first_look(asked))
            if one.value is not None:
                most = one.value if most is None else min(most, one.value)
        if one.bound == NEVER:
            one.reason = one.counted.reason or NO_ROOM

    def _take(self, one: DeploymentProgress, shape: ShapeBound, seen: SearchOutcome) -> None:
        """What a look at one of its shapes brought."""
        self.done += max(LEAST_WORK, seen.work)
        shape.take(
            CandidateBound(
                candidate=shape.candidate,
                bound=seen.bound,
                certificate=seen.certificate,
                word=seen.word,
            )
        )
        if seen.value is None or seen.measured is None:
            return
        value, peak = seen.value + one.step_end, max(seen.measured.peak_memory, default=0)
        if one.value is None or (value, peak) < (one.value, one.peak or 0):
            one.value, one.peak = value, peak
            one.known = KnownSchedule(candidate=shape.candidate, seen=seen)

    def _improve(self) -> None:
        """Search where something shorter may be, then let the joint planner take the best."""
        waiting = sorted(self.open_ones, key=lambda one: one.bound)
        for one in waiting:
            if self.best is not None or (self.left <= 0 and one.plan is not None):
                break
            self._plan(one, max(self.least, self.left / len(waiting)))
        if self.best is None:
            return
        self._close_others()
        if self.best.plan is None and not self.options.stop.is_set():
            self._plan(self.best, max(self.least, self.left))

    def _close_others(self) -> None:
        """Of each other combination whose bound is below the best: something shorter, or none."""
        tried: list[DeploymentProgress] = []
        while waiting := self._below_best(tried):
            if self.options.stop.is_set() or self.left <= self.least:
                return
            best = self.best
            assert best is not None
            assert best.value is not None
            share = OTHERS_SHARE * self.left / len(waiting)
            self._close(waiting[0], best.value, max(self.least, share))
            tried.append(waiting[0])

    def _below_best(self, tried: Sequence[DeploymentProgress]) -> list[DeploymentProgress]:
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

    def _close(self, one: DeploymentProgress, most: int, share: float) -> None:
        """Look for an iteration below ``most`` in its shapes that are not bounded by it."""
        shapes = [shape for shape in one.shapes if one.bound_of(shape) < most]
        seconds, work = self._limits(share / len(shapes))
        for shape in shapes:
            needed = preparation(shape.shaped.pipeline)
            if needed > self.seconds:
                continue
            options = SolveOptions(
                time_limit=max(needed, seconds),
                work=work,
                threads=self.options.threads,
                seed=self.options.seed,
                within=most - one.step_end - 1,
                stop=self.options.stop,
            )
            self._take(one, shape, look(CandidateSearch(shaped=shape.shaped, options=options)))
        self._tell(one)

    def _limits(self, share: float) -> tuple[float, float | None]:
        """A share of what is left, as seconds and units of work."""
        if self.options.work is None:
            return share, None
        return max(LEAST_SECONDS, self.seconds), max(LEAST_WORK, share)

    def _plan(self, one: DeploymentProgress, share: float) -> None:
        assert one.space is not None
        seconds, work = self._limits(share)
        options = replace(self.options, time_limit=seconds, work=work, tell=None)
        self.done += share if self.options.work is not None else 0.0
        if self.options.stop.is_set():  # what is known becomes a plan, no more
            options = replace(options, stop=Event())
        known = () if one.known is None else (one.known,)
        found = plan(one.space, options, executor=self.executor, known=known)
        one.plan = found
        if found.value is not None and found.winner is not None:
            one.value = found.value + one.step_end
            one.peak = found.winner.peak_memory
        bounds = {each.candidate: each for each in found.bundle}
        for shape in one.shapes:
            shape.take(bounds[shape.candidate])
        if found.status is Status.INFEASIBLE:
            one.reason = "does not fit: no schedule of it does"
        self._tell(one)

    def _tell(self, one: DeploymentProgress) -> None:
        if self.options.tell is not None:
            best = self.best
            found = "no schedule yet" if one.value is None else f"{one.value:,} us"
            shown = "none" if best is None else f"{best.value:,} us"
            seconds = time.perf_counter() - self.began
            self.options.tell(
                f"{seconds:7.2f} s  {one.counted.combination}: {found}, bound {one.bound:,} us; "
                f"best {shown}"
            )

    def _conclude(self) -> ClusterPlan:
        best = self.best
        if best is not None and best.plan is None:  # interrupted: what the first looks found
            self._plan(best, self.least)
        bounds = [one.bound for one in self.open_ones]
        value = None if best is None else best.value
        nearest = min(
            (one.counted for one in self.standings if one.counted.needed and one.counted.is_legal),
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
            bundled={str(one.counted.combination): one.bundle for one in self.standings},
            reason="interrupted: the best so far" if self.options.stop.is_set() else "",
        )

    def _status(self, value: int | None, bound: int) -> Status:
        if value is None:
            is_open = self.open_ones or any(one.is_too_large for one in self.standings)
            return Status.UNKNOWN if is_open else Status.INFEASIBLE
        return Status.OPTIMAL if bound >= value else Status.FEASIBLE

    def _row(self, one: DeploymentProgress, best: DeploymentProgress | None) -> DeploymentRow:
        return DeploymentRow(
            combination=one.counted.combination,
            status=one.status(best),
            reason=one.told(best),
            value=one.value,
            bound=one.bound,
            peak_memory=one.peak,
            on_card=one.on_card,
        )
