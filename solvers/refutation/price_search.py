"""Bounds on the makespan by prices: horizons are refuted by linear programs, one rank at a time.

Within a horizon H the program of a rank and its stores (``price_program``) says which part z of all
microbatches can be finished. Where z < 1 the rounded duals are a certificate of H + 1, if its
checker accepts it. Prices of shorter horizons, which cost little, are lengthened first
(below). Since z grows by about the same with every tick, the greatest H is then found
in three to five programs: each is asked where a straight line through two others puts z = 1.

Prices of a short horizon are lengthened in their middle to refute a longer one. In a steady state
prices are constant. They are kept up for k ticks more where they are constant for longest, which
sells k ticks more at that price; a microbatch that is gone sooner than the constant part pays what
it did. So a program of a short horizon gives prices for many microbatches; which k they refute is
asked of the checker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import cast

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.engines.apart import apart
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.gate import greatest
from bubbleproof.solvers.refutation.price_program import (
    Floats,
    LoneMicrobatch,
    PriceProgram,
    lone_microbatch,
)
from bubbleproof.solvers.refutation.store_bounds import volumes
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import IndexOrder
from bubbleproof.verify.certificates.tick_prices import (
    MOST_PAID,
    MOST_TICKS,
    Tariff,
    TickPrices,
    prices_refusal,
)

SCALE = 10**9  # of duals, to be whole numbers; more where stores have large units
FULL = 1 - 1e-7  # a z of this or more is taken for 1
MOST_COLUMNS = 100_000  # of a program: beyond, it takes minutes
MOST_KEPT = 64  # tasks of one microbatch of each group: beyond, there are too many paths
SHORTER = ((2, 5), (3, 5))  # of the horizon, for prices that are lengthened
IN_FULL = 1.0  # units, of a program of the whole horizon: the windows need the time as well
UNITS, CELLS, POWER = 4.0, 70_000, 1.8  # seconds of a program of so many cells, and its growth


def prices_beyond(
    known: int, problem: Problem, bounds: Bounds, budget: Budget
) -> Iterator[TickPrices]:
    """Certificates of more than ``known``, each of more than those before; none without HiGHS.

    Parameters
    ----------
    known
        A bound in ticks.
    """
    from bubbleproof.solvers.engines.highs import has_highs

    if not has_highs():
        return iter(())
    search = PriceSearch(problem, bounds.order, budget)
    return search.certificates(known, bounds.heads, bounds.tails)


class PriceSearch:
    """The prices of one problem. ``order`` is its index order. Precondition: no cycle."""

    def __init__(self, problem: Problem, order: IndexOrder, budget: Budget) -> None:
        self.problem, self.order, self.budget = problem, order, budget
        self._changed = int(np.abs(problem.events.delta).sum())  # units
        edges = problem.edges
        rows = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
        self.place = np.empty(problem.num_tasks, dtype=np.int64)
        self.place[rows] = np.arange(problem.num_tasks)

    def certificates(self, known: int, heads: Ints, tails: Ints) -> Iterator[TickPrices]:
        """Certificates of more than ``known``, each of more than those before, by one rank.

        Parameters
        ----------
        known
            A bound in ticks.
        heads, tails
            Ticks per task, shape (num_tasks,).
        """
        rank = self._rank(heads, tails)
        if rank is None:
            return
        stores = self._stores(rank)
        parts = self._parts(rank, stores)
        longest = _longest(parts)
        for part, whole in SHORTER:
            horizon = known * part // whole
            found = self._solved(parts, rank, stores, horizon) if horizon >= longest else None
            if found is not None and (claim := stretched(self.problem, found[1], known)):
                yield claim
                return
        yield from self._in_full(parts, rank, stores, max(known, longest))

    def _in_full(
        self, parts: list[LoneMicrobatch], rank: int, stores: list[int], known: int
    ) -> Iterator[TickPrices]:
        """By programs of the whole horizon, each where a line through two others puts z = 1."""
        refuted, not_refuted = list[tuple[int, float]](), list[tuple[int, float]]()
        horizon: int | None = known
        while horizon is not None:
            if (found := self._solved(parts, rank, stores, horizon, IN_FULL)) is None:
                return
            share, claim = found
            if share < FULL and prices_refusal(self.problem, claim) is None:
                refuted.append((horizon, share))
                yield claim
            else:
                not_refuted.append((horizon, max(share, FULL)))
            horizon = _next(refuted, not_refuted)

    def _rank(self, heads: Ints, tails: Ints) -> int | None:
        """The rank whose store shows most by its volume."""
        bounds = volumes(self.problem, self.order, heads, tails)
        best = max(bounds, key=lambda claim: claim.bound, default=None)
        if best is None:
            return None
        events, rank_of = self.problem.events, self.problem.rank_of_task
        ranks = rank_of[events.task[events.store == best.store]]
        used = np.bincount(ranks[ranks >= 0], minlength=1)
        return int(used.argmax()) if used.any() else None

    def _stores(self, rank: int) -> list[int]:
        """The stores with a capacity that the rank's tasks change."""
        events = self.problem.events
        changed = np.unique(events.store[self.problem.rank_of_task[events.task] == rank]).tolist()
        return [store for store in changed if self.problem.stores[store].capacity is not None]

    def _parts(self, rank: int, stores: list[int]) -> list[LoneMicrobatch]:
        homes, events = self.problem.occupancy, self.problem.events
        wanted = set(homes.task[homes.resource == rank].tolist())
        wanted |= set(events.task[np.isin(events.store, stores)].tolist())
        groups = self.order.groups
        if sum(len(wanted.intersection(group[:, 0].tolist())) for group in groups) > MOST_KEPT:
            return []
        return [
            lone_microbatch(self.problem, group[:, 0], group.shape[1], wanted, self.place)
            for group in groups
        ]

    def _solved(
        self,
        parts: list[LoneMicrobatch],
        rank: int,
        stores: list[int],
        horizon: int,
        most_units: float = inf,
    ) -> tuple[float, TickPrices] | None:
        """z, and the prices that show it; None out of time or beyond reach."""
        kept = sum(len(part.kept) for part in parts)
        if not kept or horizon * (kept + 1 + len(stores)) > MOST_COLUMNS:
            return None
        program = PriceProgram(self.problem, parts, rank, stores, horizon)
        rows, most = program.rows, np.concatenate(program.most)
        units = UNITS * (len(rows[0]) / CELLS) ** POWER
        if units > most_units or self.budget.now() + units > self.budget.after(inf):
            return None
        self.budget.meter.spend(units)
        if (found := self._maximized(program.num_columns, rows, most)) is None:
            return None
        sold, *held = program.prices(found[1])
        paid = self.problem.num_tasks * sold.sum() + self._changed * sum(x.sum() for x in held)
        scale = min(SCALE * max(program.units, default=1), MOST_PAID / 2 / max(paid, 1.0))
        return found[0], TickPrices(
            resources=(_tariff(rank, scale * sold),),
            stores=tuple(_tariff(of, scale * each) for of, each in zip(stores, held, strict=True)),
            bound=horizon + 1,
        )

    def _maximized(
        self, columns: int, rows: tuple[Ints, Ints, Floats], most: Floats
    ) -> tuple[float, Floats] | None:
        """What HiGHS finds, in a process of its own where memory is limited."""
        from bubbleproof.solvers.engines.highs import maximize_last

        given = columns, rows, most
        if self.budget.memory is None:
            return maximize_last(*given, self.budget)
        found = apart(f"{maximize_last.__module__}:maximize_last", given, self.budget, "HiGHS")
        return cast("tuple[float, Floats] | None", found)


def _longest(parts: list[LoneMicrobatch]) -> int:
    """The ticks that a microbatch alone takes, on which the programs are built."""
    return max((part.longest for part in parts), default=0)


def _next(refuted: list[tuple[int, float]], not_refuted: list[tuple[int, float]]) -> int | None:
    """The next horizon: on a line through two points, between what is refuted and what is not."""
    if not refuted:
        return None
    low, below = refuted[-1]
    other = not_refuted[-1] if not_refuted else refuted[-2] if len(refuted) > 1 else (0, 0.0)
    slope = (below - other[1]) / (low - other[0])
    step = max(1, int((1 - below) / slope)) if slope > 0 else 1
    high = min((horizon for horizon, _ in not_refuted), default=low + step + 1)
    return min(low + step, high - 1) if high - low > 1 else None


def _tariff(of: int, prices: Floats) -> Tariff:
    """Whole prices where they change."""
    prices = np.rint(prices)
    begin = np.flatnonzero(np.diff(prices, prepend=0))
    return Tariff(of=of, steps=tuple(zip(begin.tolist(), map(int, prices[begin]), strict=True)))


def stretched(problem: Problem, prices: TickPrices, known: int) -> TickPrices | None:
    """The prices, lengthened to prove the most they can beyond ``known`` by halving; or None.

    Precondition: ``known`` is a bound already, and the prices are of a horizon no longer.

    Parameters
    ----------
    known
        A bound in ticks that is proved already.
    """
    middle = _middle((*prices.resources, *prices.stores))
    if middle is None:
        return None

    def proves(bound: int) -> bool:
        longer = lengthened(prices, middle, bound - prices.bound)
        return prices_refusal(problem, longer) is None

    if not proves(known + 1):
        return None
    return lengthened(prices, middle, greatest(known + 1, MOST_TICKS, proves) - prices.bound)


def lengthened(prices: TickPrices, middle: int, ticks: int) -> TickPrices:
    """The prices at tick ``middle`` kept up for so many ticks more.

    Parameters
    ----------
    middle
        The tick whose prices are kept up.
    ticks
        How many more, 0 or more.
    """

    def later(tariffs: Iterable[Tariff]) -> tuple[Tariff, ...]:
        return tuple(
            replace(
                tariff,
                steps=tuple((t if t <= middle else t + ticks, price) for t, price in tariff.steps),
            )
            for tariff in tariffs
        )

    return replace(
        prices,
        resources=later(prices.resources),
        stores=later(prices.stores),
        bound=prices.bound + ticks,
    )


def _middle(tariffs: Iterable[Tariff]) -> int | None:
    """In the middle of where no price changes for longest, between two changes."""
    changes = sorted({tick for tariff in tariffs for tick, _ in tariff.steps})
    begin, end = max(pairwise(changes), key=lambda two: two[1] - two[0], default=(0, 0))
    return (begin + end) // 2 if end > begin else None
