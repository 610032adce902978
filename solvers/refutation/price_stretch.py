"""Prices of a short horizon, lengthened in their middle to refute a longer one.

In a steady state prices are constant. They are kept up for k ticks more where they are constant
for longest, which sells k ticks more at that price; a microbatch that is gone sooner than the
constant part pays what it did. So a program of a short horizon gives prices for many microbatches;
which k they refute is asked of the checker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from bubbleproof.solvers.gate import greatest
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.tick_prices import (
    MOST_TICKS,
    Tariff,
    TickPrices,
    prices_refusal,
)


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
