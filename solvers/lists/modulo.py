"""Modulo schedules: those that repeat from the first microbatch to the last, for several chunks.

With one chunk per rank published orders and lengthened short instances (``large``) are good. With
several under a tight capacity list scheduling is not, and a period that fits
(``engines.cpsat_periodic``) is the best beginning for a search by windows. Periods of one and, if
that is far from the period bound, two microbatches are tried, between that bound and the shortest
period known (``modulo_lists``) by halving; then again with more effort.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.cycle import Cycle
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.identical import IdenticalClasses
from bubbleproof.solvers.lists.stretch import first_microbatches, period_bound
from bubbleproof.solvers.memory_rules import LimitedStore, exact_stores, lifetimes_of
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.certificates.index_order import index_order

COUNTS = (1, 2)  # microbatches of a period
GLANCES = (0.5, 2.0)  # deterministic seconds of CP-SAT for whether a period fits, in turn
WORK = 1.0  # for its least span
ROOM = 6  # periods by which the span may exceed that of a microbatch alone
FOREVER = 1 << 60  # ticks
GOOD = Fraction(21, 20)  # times the bound
MOST_TASKS = 1_000  # of the microbatches of a period


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
        yield left_shift(problem, schedule_of_starts(problem, full).program)
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
            held.append(
                LimitedStore(store=number, room=store.capacity - store.base, lifetimes=lifetimes)
            )
    bounds = lower_bounds(few)
    if bounds.is_cyclic:
        return None
    longest = int((bounds.heads + few.duration + bounds.tails).max())
    return Cycle(few=few, heads=bounds.heads, repeats=repeats, held=held, longest=longest)
