"""Schedules for a thousand microbatches, from short instances that ``stretch`` lengthens.

First list scheduling on a short instance: where its order repeats by itself, periods are inserted.
Then CP-SAT on short instances in which a band of a given period is demanded, by rising ticks per
microbatch from the period bound on and with more and more room at both ends. Every schedule found
is tried at the real number of microbatches as it is and left-shifted; the caller checks it in full.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.engines.thread import run_interruptibly
from bubbleproof.solvers.greedy import greedy_programs
from bubbleproof.solvers.starts import schedule_of_starts, starts_by_task
from bubbleproof.solvers.stretch import (
    LONGEST_PERIOD,
    Band,
    find_band,
    first_microbatches,
    period_bound,
    stretched,
)
from bubbleproof.theory.actions import Ints
from bubbleproof.theory.index_order import IndexOrder
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Schedule
from bubbleproof.theory.timing import left_shift

LEAST_MICROBATCHES = 64  # from here on short instances are worth their while
MOST_TASKS = 4000  # of a short instance for CP-SAT
SHARE = 4  # of the time left goes to one short instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A short instance worth solving: its microbatches, with a band of a given period."""

    microbatches: int
    band: Band


class LargeSearch:
    """Schedules of a problem of many identical microbatches, best first by guess."""

    def __init__(self, problem: Problem, order: IndexOrder, budget: Budget) -> None:
        self.problem, self.order, self.budget = problem, order, budget
        self.best: int | None = None  # the caller's incumbent, in ticks
        self.rate = period_bound(problem, order)

    @property
    def microbatches(self) -> int:
        return self.order.num_microbatches

    def by_list_scheduling(self) -> Iterator[Schedule]:
        """Stretched schedules whose order repeats by itself."""
        shortest = 5 * self.problem.num_ranks + 2
        counts, sizes = [1], [shortest]
        for size in sizes:
            if size >= self.microbatches or not self.budget.seconds:
                return
            short = first_microbatches(self.problem, size)
            bounds = lower_bounds(short)
            assert bounds.order is not None, "fewer microbatches are as identical"
            for program in greedy_programs(short, bounds):
                starts = starts_by_task(short, left_shift(short, program))[bounds.order.members]
                band = find_band(starts)
                if band is not None and band.count not in counts:
                    counts.append(band.count)
                    sizes.append(shortest + (self.microbatches - shortest) % band.count)
                if band is not None and not (self.microbatches - size) % band.count:
                    yield from self._at_full_size(starts, band)
                if not self.budget.seconds:
                    return

    def by_engine(self) -> Iterator[Schedule]:
        """Stretched schedules of short instances in which CP-SAT had to keep a band."""
        for plan in self.plans():
            if not self.budget.seconds:
                return
            if self._can_improve(plan) and (starts := self._solve(plan)) is not None:
                yield from self._at_full_size(starts, plan.band)

    def plans(self) -> Iterator[Plan]:
        """Short instances by rising ticks per microbatch, then by size."""
        ranks = self.problem.num_ranks
        classes = len(self.order.members)
        periods = {
            (Fraction(ticks, count), count, ticks)
            for count in range(1, LONGEST_PERIOD + 1)
            for ticks in (math.ceil(self.rate * count), math.ceil(self.rate * count) + 1)
        }
        for _, count, ticks in sorted(periods):
            for margin in (ranks, 3 * ranks // 2, 2 * ranks, 3 * ranks):
                short = 2 * margin + max(ranks, 3 * count)
                short += (self.microbatches - short) % count
                if short < self.microbatches and short * classes <= MOST_TASKS:
                    band = Band(first=margin, last=short - margin, count=count, ticks=ticks)
                    yield Plan(microbatches=short, band=band)

    def _added(self, plan: Plan) -> int:
        """Ticks of the periods that lengthen a plan's schedule to the real size."""
        return (self.microbatches - plan.microbatches) // plan.band.count * plan.band.ticks

    def _can_improve(self, plan: Plan) -> bool:
        """Whether a plan at its best, no bubble at its ends, beats the incumbent."""
        least = plan.microbatches * self.rate + self._added(plan)
        return self.best is None or least < self.best

    def _solve(self, plan: Plan) -> Ints | None:
        """Starts ``[c, j]`` of a short instance with the plan's band, better than the incumbent."""
        from bubbleproof.solvers.engines.cpsat import CpSatModel, run

        short = first_microbatches(self.problem, plan.microbatches)
        bounds = lower_bounds(short)
        limit = None if self.best is None else self.best - 1 - self._added(plan)
        encoding = Encoding(short, bounds, limit=limit)
        if encoding.is_hopeless or bounds.order is None:
            return None
        model = CpSatModel(encoding)
        model.build()
        band, members = plan.band, bounds.order.members
        for row in members[:, band.first : band.last].tolist():
            for task, later in zip(row[: -band.count], row[band.count :], strict=True):
                model.model.add(model.start[later] == model.start[task] + band.ticks)
        model.model.minimize(model.goal)
        share = time.perf_counter() + self.budget.seconds / SHARE
        budget = replace(self.budget, deadline=share, report=None)
        outcome = run_interruptibly(lambda: run(model, budget), self.budget.stop)
        return None if outcome.start is None else outcome.start[members]

    def _at_full_size(self, starts: Ints, band: Band) -> Iterator[Schedule]:
        full = np.empty(self.problem.num_tasks, dtype=np.int64)
        full[self.order.members] = stretched(starts, band, self.microbatches)
        schedule = schedule_of_starts(self.problem, full)
        yield schedule
        yield left_shift(self.problem, schedule.program)
