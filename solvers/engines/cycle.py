"""Microbatches whose schedule is to repeat (``cpsat_periodic``, ``cpsat_turns``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bubbleproof.solvers.memory_rules import LimitedStore
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

Turns = dict[tuple[int, int], int]  # by (task, other) of a resource (``cpsat_turns``)
PRICE = 2  # of a unit held too much for a tick, beside each that is held at all


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cycle:
    """``few`` microbatches that repeat, with their ``heads`` (ticks).

    ``repeats`` are precedences to a task so many periods later; ``held`` what is kept in stores
    whose room these precedences do not say. ``longest``: no span is longer.
    """

    few: Problem
    heads: Ints
    repeats: Sequence[tuple[int, int, int]]
    held: Sequence[LimitedStore]
    longest: int


def turns_of(cycle: Cycle, starts: Ints, period: int) -> Turns:
    """The turn of the second task against the first, of every two on a resource.

    Parameters
    ----------
    starts
        One a task of ``few``, in ticks or parts of them.
    period
        In the same.
    """
    occupancy, found = cycle.few.occupancy, dict[tuple[int, int], int]()
    for resource in range(len(cycle.few.resources)):
        tasks = occupancy.task[occupancy.resource == resource].tolist()
        for one, other in combinations(tasks, 2):
            found[one, other] = -int((starts[other] - starts[one]) // period)
    return found


def price(cycle: Cycle, starts: Ints, ticks: int) -> tuple[int, int]:
    """Units beyond the room of each store at worst, summed; and all that the model minimizes.

    Parameters
    ----------
    starts
        Ticks of each task of the microbatches of one period.
    ticks
        Of a period.
    """
    excess, prices, total = 0, 0, 0
    for held in cycle.held:
        table = [(life.first, life.last, life.amount) for life in held.lifetimes]
        first, last, amount = np.array(table, dtype=np.int64).reshape(-1, 3).T
        begin, end = starts[first], starts[last] + cycle.few.duration[last]
        at = begin[:, None]
        load = ((at - begin) // ticks - (at - end) // ticks) @ amount
        worst = max(0, int(load.max(initial=0)) - held.room)
        stays = int(amount @ (end - begin))
        excess += worst
        prices += worst * ticks + max(0, stays - held.room * ticks)
        total += stays
    return excess, PRICE * prices + total


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A few neighbouring ranks that each do the same ``count`` microbatches in every period.

    ``ticks[r]`` are those of F, of B or I, and of W where there is one; ``down[r]`` and ``up[r]``
    the lags of the link behind rank r. ``below`` are the starts of F and ends of B or I on the rank
    behind the block, ``count`` of each; None where the pipeline ends. ``is_first``: it begins with
    rank 0, which holds most, so that the wait for W counts there. ``chunks``: of how many unlike
    chunks the microbatches are, the k-th of chunk k modulo ``chunks``; 1 where they are alike.
    """

    ticks: tuple[tuple[int, ...], ...]
    down: tuple[int, ...]
    up: tuple[int, ...]
    count: int
    below: tuple[tuple[int, ...], tuple[int, ...]] | None
    is_first: bool
    chunks: int = 1

    @property
    def shares(self) -> list[int]:
        """For each microbatch, how many chunks have F before it and B behind it, its own too."""
        return [1 + k % self.chunks for k in range(self.count)]
