"""Modulo schedules: those that repeat from the first microbatch to the last, for several chunks.

With one chunk per rank published orders and lengthened short instances (``large``) are good. With
several under a tight capacity list scheduling is not, and a period that fits
(``engines.cpsat_periodic``) is the best beginning for a search by windows. Periods of one and, if
that is far from the period bound, two microbatches are tried, between that bound and the shortest
period known (``modulo_lists``) by halving; then again with more effort.

Of a schedule that repeats every microbatch shorter periods are sought step by step, each near the
one before (``engines.cpsat_turns``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.cycle import Cycle, Turns, price, turns_of
from bubbleproof.solvers.engines.engine import SMALL, Budget, Meter
from bubbleproof.solvers.identical import IdenticalClasses
from bubbleproof.solvers.lists.modulo_lists import Turn
from bubbleproof.solvers.lists.stretch import first_microbatches, period_bound
from bubbleproof.solvers.memory_rules import LimitedStore, exact_stores, lifetimes_of
from bubbleproof.solvers.starts import shifted
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.index_order import index_order

COUNTS = (1, 2)  # microbatches of a period
GLANCES = (0.5, 2.0)  # deterministic seconds of CP-SAT for whether a period fits, in turn
WORK = 1.0  # for its least span
ROOM = 6  # periods by which the span may exceed that of a microbatch alone
FOREVER = 1 << 60  # ticks
GOOD = Fraction(21, 20)  # times the bound
MOST_TASKS = 1_000  # of the microbatches of a period
PART = 16  # of a period, by which it is made shorter at first: larger steps take longer in all
FINEST = 1_000  # parts of a period: less than one is not worth a search
FIRST, NEARER = 1.0, 0.25  # deterministic seconds of CP-SAT for a shorter period, and a step nearer
MOST_FAILED = 8  # steps in turn that bring nothing


def periodic_schedules(
    problem: Problem, alike: IdenticalClasses, budget: Budget, known: Fraction | None = None
) -> Iterator[Schedule]:
    """Schedules whose microbatches repeat, for the checker to judge.

    Parameters
    ----------
    known
        Ticks per microbatch of a schedule that is known, to be shortened; None for none.
    """
    rate = period_bound(problem, alike.order)
    for count in COUNTS:
        if count > alike.num_microbatches or count * len(alike.members) > MOST_TASKS:
            return
        cycle = cycle_of(problem, alike, count)
        if cycle is None or not cycle.held:
            return
        longest = known * count if known is not None else Fraction(cycle.longest * count)
        found = _least_period(cycle, math.ceil(rate * count), math.ceil(longest), budget)
        if found is None:
            continue
        ticks, starts = found
        shorter = _fitting(cycle, ticks, budget, WORK, starts)
        full = repeated(starts if shorter is None else shorter, cycle, alike, ticks)
        yield from shifted(problem, full)
        if ticks <= GOOD * rate * count:
            return


def _least_period(cycle: Cycle, low: int, high: int, budget: Budget) -> tuple[int, Ints] | None:
    """The shortest period from ``low`` to ``high`` - 1 ticks that CP-SAT sees to fit, if any."""
    found: tuple[int, Ints] | None = None
    least = low
    for effort in GLANCES:
        low = least
        while low < high and budget.seconds:
            ticks = (low + high) // 2
            starts = _fitting(cycle, ticks, budget, effort)
            if starts is None:
                low = ticks + 1
            else:
                found, high = (ticks, starts), ticks
    return found


def shorter_schedules(
    problem: Problem, alike: IdenticalClasses, turn: Turn, budget: Budget
) -> Iterator[Schedule]:
    """Schedules that repeat every microbatch, of ever shorter periods, for the checker to judge.

    Parameters
    ----------
    turn
        A schedule of the problem's that repeats.
    """
    cycle = cycle_of(problem, alike, 1)
    if cycle is None or len(alike.members) > MOST_TASKS:
        return
    with ThreadPoolExecutor(budget.threads) as pool:
        nearing = Nearing(cycle, budget, pool)
        if not nearing.is_meant:
            return
        ticks, least = math.ceil(turn.rate), max(1, math.ceil(period_bound(problem, alike.order)))
        starts = turn.starts * ticks // turn.period
        turns = turns_of(cycle, turn.starts, turn.period)
        steps = [max(1, ticks // FINEST), max(2, 2 * ticks // FINEST), ticks // PART]
        while steps and budget.seconds:
            shorter, found = ticks - steps[-1], None
            if least <= shorter < ticks:
                found = nearing.starts(shorter, starts * shorter // ticks, turns)
            if found is None:
                steps.pop()
                continue
            starts, ticks, turns = found, shorter, turns_of(cycle, found, shorter)
            full = repeated(starts, cycle, alike, ticks)
            yield from shifted(problem, full)


class Nearing:
    """Brings schedules that repeat nearer to what memory allows, some resources at a time.

    As many choices of resources as there are threads are tried at once.
    """

    def __init__(self, cycle: Cycle, budget: Budget, pool: ThreadPoolExecutor) -> None:
        self.cycle, self.budget, self.pool = cycle, budget, pool
        occupancy, resources = cycle.few.occupancy, range(len(cycle.few.resources))
        self.tasks = [set(occupancy.task[occupancy.resource == r].tolist()) for r in resources]
        self.rng = Random(budget.seed)

    @property
    def is_meant(self) -> bool:
        """Whether each store is used by tasks of one resource, whose order says what it holds."""
        used = [{t for h in held.lifetimes for t in (h.first, h.last)} for held in self.cycle.held]
        return all(any(users <= tasks for tasks in self.tasks) for users in used)

    def starts(self, ticks: int, known: Ints, turns: Turns) -> Ints | None:
        """Starts with that period that memory allows, if found.

        Parameters
        ----------
        ticks
            Of the period.
        known
            Those of a longer period, in proportion.
        turns
            Of the longer period.
        """
        (found,) = self._searched(FIRST, ticks, known, turns, [None])
        if found is None:
            return None
        excess, least = price(self.cycle, found, ticks)
        failed = 0
        while excess and failed < MOST_FAILED and self.budget.seconds:
            turns, failed = turns_of(self.cycle, found, ticks), failed + 1
            answers = self._searched(NEARER, ticks, found, turns, self._choices())
            for answer in answers:
                priced = (excess, least) if answer is None else price(self.cycle, answer, ticks)
                if answer is not None and priced[1] <= least:
                    failed = 0 if priced[1] < least else failed
                    found, (excess, least) = answer, priced
        return None if excess else found

    def _searched(
        self, work: float, ticks: int, known: Ints, turns: Turns, choices: Sequence[set[int] | None]
    ) -> list[Ints | None]:
        """By CP-SAT, which is loaded here: most problems need none of it."""
        from bubbleproof.solvers.engines.cpsat_turns import search

        meters = [Meter() for _ in choices]  # of their own: one must not see how far another is

        def searched(meter: Meter, free: set[int] | None) -> Ints | None:
            budget = replace(self.budget, threads=1, report=None, work=math.inf, meter=meter)
            return search(self.cycle, ticks, known, turns, budget, work, free)

        found = [*self.pool.map(searched, meters, choices)]
        self.budget.meter.spend(SMALL + sum(meter.units for meter in meters))
        return found

    def _choices(self) -> list[set[int]]:
        """For each thread the tasks of at least half of the resources."""
        most = len(self.tasks)
        sizes = [self.rng.randint(-(-most // 2), most) for _ in range(self.budget.threads)]
        return [set[int]().union(*self.rng.sample(self.tasks, size)) for size in sizes]


def _fitting(
    cycle: Cycle, ticks: int, budget: Budget, work: float, known: Ints | None = None
) -> Ints | None:
    """Starts with that period, by CP-SAT, which is loaded here: most problems need none of it."""
    from bubbleproof.solvers.engines.cpsat_periodic import search

    longer = replace(cycle, longest=cycle.longest + ROOM * ticks)
    return search(longer, ticks, FOREVER, budget, work, known)


def repeated(starts: Ints, cycle: Cycle, alike: IdenticalClasses, ticks: int) -> Ints:
    """Starts of all microbatches (ticks per task) from those of the first few.

    Parameters
    ----------
    starts
        Ticks of each task of the first few.
    ticks
        The period.
    """
    few = index_order(cycle.few).groups[0]
    full = np.empty(alike.members.size, dtype=np.int64)
    for j in range(alike.num_microbatches):
        turns, place = divmod(j, few.shape[1])
        full[alike.members[:, j]] = starts[few[:, place]] + turns * ticks
    return full


def cycle_of(problem: Problem, alike: IdenticalClasses, count: int) -> Cycle | None:
    """The first ``count`` microbatches as a cycle; None where some store has another shape.

    Parameters
    ----------
    count
        Microbatches of a cycle, 1 or more.
    """
    few, order = first_microbatches(problem, count), alike.order
    rows = index_order(few).groups[0].tolist()
    row_of = dict(zip(alike.members[:, 0].tolist(), rows, strict=True))
    repeats = [(a, b, 0) for row in rows for a, b in pairwise(row)]
    repeats += [(row[-1], row[0], 1) for row in rows]
    for life in order.lifecycles:
        limit = order.limit(life)
        if limit is not None and 0 < limit < alike.num_microbatches:
            for j in range(count):
                turns, place = divmod(j + limit, count)
                repeats.append((row_of[life.last][j], row_of[life.first][place], turns))
    exact, held = exact_stores(order), []
    for number, store in enumerate(few.stores):
        if number not in exact and store.capacity is not None:
            if (lifetimes := lifetimes_of(few, number)) is None:
                return None
            room = store.capacity - store.base
            limited = LimitedStore(store=number, room=room, lifetimes=lifetimes)
            held.append(limited.coarse(alike.num_microbatches))
    bounds = lower_bounds(few)
    if bounds.is_cyclic:
        return None
    longest = int((bounds.heads + few.duration + bounds.tails).max())
    return Cycle(few=few, heads=bounds.heads, repeats=repeats, held=held, longest=longest)
