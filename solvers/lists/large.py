"""Schedules of many microbatches, from short instances that ``stretch`` lengthens.

First list scheduling on a short instance: where its order repeats by itself, periods are inserted.
Then CP-SAT on short instances in which a band of a given period is demanded, by rising ticks per
microbatch from the period bound on and with more and more room at both ends. Every schedule found
is tried at the real number of microbatches as it is and left-shifted; the caller checks it in full.

A demanded band pays from a few microbatches on, where an engine would search the whole instance: it
finds the optimum of split p=8 m=32 in a tenth of a second, not in a minute. There only the
fastest periods are tried, and briefly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.gate import schedule_from
from bubbleproof.solvers.identical import IdenticalClasses
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.solvers.lists.merging import LISTED
from bubbleproof.solvers.lists.stretch import (
    LONGEST_PERIOD,
    find_band,
    first_microbatches,
    period_bound,
    stretched,
)
from bubbleproof.solvers.starts import schedule_of_starts, shifted, starts_by_task
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.orders.periods import Band
from bubbleproof.theory.pipelines.timing import left_shift

LEAST_MICROBATCHES = 16  # from here on short instances are worth their while
MANY_MICROBATCHES = 64  # from here on there is no other way, and all the time is theirs
FEW = 3  # short instances tried below
GLANCE, BRIEF = 0.05, 1.0  # CP-SAT's deterministic seconds for a refutation and for a schedule
GRAIN = 64  # parts of what is open that are told apart
MOST_TASKS = 4000  # of a short instance for CP-SAT
PREPARED = 4e-5  # units of work per task for the bounds and one list of a short instance
SHARE = 4  # of the time left goes to one short instance


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortInstance:
    """A short instance worth solving: its microbatches, with a band of a given period."""

    microbatches: int
    band: Band


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """Of a short instance: starts ``[c, j]``, or whether there are none."""

    starts: Ints | None = None
    is_refuted: bool = False


class LargeSearch:
    """Schedules of a problem of many identical microbatches, best first by guess."""

    def __init__(
        self,
        problem: Problem,
        alike: IdenticalClasses,
        budget: Budget,
        known: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.problem, self.alike, self.budget = problem, alike, budget
        self.known = known
        self.rate = period_bound(problem, alike.order)

    @property
    def best(self) -> int | None:
        """Ticks of the caller's incumbent, to stay below."""
        return self.known()

    @property
    def microbatches(self) -> int:
        return self.alike.num_microbatches

    @property
    def has_many(self) -> bool:
        """Whether the instance is beyond an engine."""
        return self.microbatches >= MANY_MICROBATCHES

    def by_list_scheduling(self) -> Iterator[Schedule]:
        """Stretched schedules whose order repeats by itself."""
        shortest = 5 * self.problem.num_ranks + 2
        counts, sizes = [1], [shortest]
        for size in sizes:
            units = PREPARED * size * len(self.alike.members)
            if size >= self.microbatches or units > self.budget.seconds:
                return
            short = first_microbatches(self.problem, size)
            bounds = lower_bounds(short)
            for program in greedy_programs(short, bounds):
                self.budget.meter.spend(LISTED * short.num_tasks)
                starts = starts_by_task(short, left_shift(short, program))[bounds.order.groups[0]]
                band = find_band(starts)
                if band is not None and band.count not in counts:
                    counts.append(band.count)
                    sizes.append(shortest + (self.microbatches - shortest) % band.count)
                if band is not None and not (self.microbatches - size) % band.count:
                    yield from self._at_full_size(_Answer(starts=starts), band)
                if not self.budget.seconds:
                    return

    def by_engine(self) -> Iterator[Schedule]:
        """Stretched schedules of short instances in which CP-SAT had to keep a band."""
        for plan in self.plans():
            if not self.budget.seconds:
                return
            if self._can_improve(plan):
                limit = None if self.best is None else self.best - 1
                answer = self._solve(plan, limit, self.budget.part(1 / SHARE))
                yield from self._at_full_size(answer, plan.band)

    def above(self, bound: int) -> Iterator[Schedule]:
        """As ``by_engine``, a few plans only, each near the makespan that it can reach.

        Too short a makespan is refuted in no time where a band is demanded. So the shortest that is
        not, from ``bound`` (ticks) on, is found by halving, and most of the time goes to it.

        Parameters
        ----------
        bound
            Ticks that no schedule is below.
        """
        for plan in islice(self.plans(), FEW):
            if self.budget.seconds and self._can_improve(plan):
                yield from self._at_full_size(self._at_best(plan, bound), plan.band)

    def _at_best(self, plan: ShortInstance, bound: int) -> _Answer:
        """Starts with the least makespan from ``bound`` on that is not refuted at a glance."""
        low, high = bound, bound if self.best is None else self.best - 1
        middle, grain = low, (high - low) // GRAIN
        while high - low > grain and self.budget.seconds:
            answer = self._solve(plan, middle, self.budget, work=GLANCE)
            if answer.is_refuted:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        if not self.budget.seconds:
            return _Answer()
        return self._solve(plan, low, self.budget, work=BRIEF)

    def plans(self) -> Iterator[ShortInstance]:
        """Short instances by rising ticks per microbatch, then by size."""
        ranks = self.problem.num_ranks
        classes = len(self.alike.members)
        periods = sorted(
            (Fraction(ticks, count), count, ticks)
            for count in range(1, LONGEST_PERIOD + 1)
            for ticks in (math.ceil(self.rate * count), math.ceil(self.rate * count) + 1)
        )
        if not self.has_many:
            periods = [period for period in periods if period[0] == periods[0][0]]
        for _, count, ticks in periods:
            for margin in (3 * ranks // 4, ranks, 3 * ranks // 2, 2 * ranks, 3 * ranks):
                width = ranks if self.has_many else ranks // 2
                short = 2 * margin + max(width, 3 * count)
                short += (self.microbatches - short) % count
                if short < self.microbatches and short * classes <= MOST_TASKS:
                    band = Band(first=margin, last=short - margin, count=count, ticks=ticks)
                    yield ShortInstance(microbatches=short, band=band)

    def _added(self, plan: ShortInstance) -> int:
        """Ticks of the periods that lengthen a plan's schedule to the real size."""
        return (self.microbatches - plan.microbatches) // plan.band.count * plan.band.ticks

    def _can_improve(self, plan: ShortInstance) -> bool:
        """Whether a plan at its best, no bubble at its ends, beats the incumbent."""
        least = plan.microbatches * self.rate + self._added(plan)
        return self.best is None or least < self.best

    def _solve(
        self, plan: ShortInstance, limit: int | None, budget: Budget, *, work: float = math.inf
    ) -> _Answer:
        """A short instance with the plan's band, at most ``limit`` ticks at the real size.

        ``work`` bounds the deterministic seconds, which no other job on the machine changes.
        """
        from bubbleproof.solvers.engines.cpsat import CpSatModel, run
        from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver

        short = first_microbatches(self.problem, plan.microbatches)
        bounds = lower_bounds(short)
        encoding = Encoding(
            short, bounds, limit=None if limit is None else limit - self._added(plan)
        )
        if encoding.is_hopeless:
            return _Answer(is_refuted=True)
        model = CpSatModel(encoding)
        model.build()
        band, members = plan.band, bounds.order.groups[0]
        for row in members[:, band.first : band.last].tolist():
            for task, later in zip(row[: -band.count], row[band.count :], strict=True):
                model.model.add(model.start[later] == model.start[task] + band.ticks)
        model.model.minimize(model.goal)
        solver = CpSatSolver()
        solver.parameters.max_deterministic_time = work
        outcome = run(model, replace(budget, report=None), solver)
        if outcome.start is None:
            return _Answer(is_refuted=outcome.is_refuted)
        schedule_from("cpsat (short instance)", outcome.start, short)
        return _Answer(starts=outcome.start[members], is_refuted=outcome.is_refuted)

    def _at_full_size(self, answer: _Answer, band: Band) -> Iterator[Schedule]:
        if answer.starts is None:
            return
        starts = answer.starts
        full = np.empty(self.problem.num_tasks, dtype=np.int64)
        full[self.alike.members] = stretched(starts, band, self.microbatches)
        yield schedule_of_starts(self.problem, full)
        yield from shifted(self.problem, full)
