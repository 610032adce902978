"""Memory as orders: clauses "these tasks do not all come before t, or those do not all come after".

Each is a lemma whose ``full`` is t (``verify.certificates.certificate``). Where activations are
released in parts, all of them are stated beforehand. Of other stores there are too many; they are
found one by one, each refuting a schedule that breaks a capacity. Where tasks of several resources
meet in a store (transfers), they have no orders, and the clause speaks of their starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.memory_rules import LimitedStore
from bubbleproof.theory.model.actions import Ints
from bubbleproof.verify.certificates.drup_replay import DrupReplay, Literal


@dataclass(frozen=True, slots=True)
class FullStore:
    """At the start of ``task`` a store would hold too much, were all literals false."""

    literals: tuple[Literal, ...]
    task: int


class Orders:
    """Clauses of orders, each checked as the certificate's checker will."""

    def __init__(self, replay: DrupReplay) -> None:
        self.replay = replay

    def full(self, task: int, before: list[int], after: list[int]) -> FullStore | None:
        """Not all of ``before`` end by the start of ``task`` and all of ``after`` start behind it.

        None where paths say so already, or where it is not true.

        Parameters
        ----------
        task, before, after
            Indices of tasks.
        """
        if not self.replay.ticks[task]:
            return None
        literals = []
        for pairs in ([(task, other) for other in before], [(other, task) for other in after]):
            for pair in pairs:
                if self.replay.earlier[pair[1]] >> pair[0] & 1:
                    return None
                if pair in self.replay.orders:
                    literals.append(self.replay.orders[pair])
        return self._true(literals, task)

    def full_while(self, before: list[int], after: list[int], start: Ints) -> FullStore | None:
        """The same of tasks that have no orders, by the moments that they have in a schedule.

        With x a task that starts in it after all of ``before`` and before all of ``after`` end, say
        within ``first`` and ``last``: x starts outside of these, or one of ``before`` starts after
        ``first``, or one of ``after`` ends by ``last``.

        Parameters
        ----------
        before, after
            Indices of tasks.
        start
            Ticks per task, of a schedule.
        """
        ticks = self.replay.ticks
        if not after:
            return None
        first = max(int(start[task]) for task in before)
        last = min(int(start[task]) + ticks[task] for task in after) - 1
        for x in np.flatnonzero((start >= first) & (start <= last)).tolist():
            if ticks[x]:
                literals = [(2 * x + 1, 1 - first), (2 * x, last + 1)]
                literals += [(2 * task, first + 1) for task in before if task != x]
                literals += [(2 * task + 1, ticks[task] - last) for task in after if task != x]
                if (found := self._true(literals, x)) is not None:
                    return found
        return None

    def _true(self, literals: list[Literal], task: int) -> FullStore | None:
        found = FullStore(tuple(dict.fromkeys(literals)), task)
        return found if self.replay.follows(found.literals, task) else None


def release_clauses(encoding: Encoding, orders: Orders) -> Iterator[FullStore]:
    """The clauses of all stores whose activations are released in parts."""
    for clause in encoding.memory.clauses:
        found = orders.full(clause.later, [], list(clause.either))
        if found is not None:
            yield found


def overloads(encoding: Encoding, orders: Orders, start: Ints) -> Iterator[FullStore]:
    """What a schedule (a start per task) breaks of the other stores' capacities.

    Precondition: the schedule is in index order.

    Parameters
    ----------
    start
        Ticks per task, shape (num_tasks,).
    """
    for held in encoding.memory.held:
        groups = _groups(encoding, held)
        for task in dict.fromkeys(first for firsts, _, _ in groups for first in firsts):
            now = start[task]
            counts = [
                (
                    int((start[firsts] <= now).sum()),
                    int((start[lasts] + encoding.problem.duration[lasts] <= now).sum()),
                )
                for firsts, lasts, _ in groups
            ]
            excess = -held.room
            for (begun, ended), (_, _, amount) in zip(counts, groups, strict=True):
                excess += amount * (begun - ended)
            if excess > 0:
                before, after = _cover(task, groups, counts, excess - 1)
                found = orders.full(task, before, after)
                found = found or orders.full_while([*before, task], after, start)
                if found is not None:
                    yield found


def meet_in_stores(encoding: Encoding) -> bool:
    """Whether tasks of several resources change one store, so that clauses speak of starts.

    The checker knows starts by the tick, so that a model of longer steps would say more.
    """
    occupancy = encoding.problem.occupancy
    home = np.zeros(encoding.problem.num_tasks, dtype=np.int64)
    home[occupancy.task] = occupancy.resource
    return any(
        len({int(home[task]) for life in held.lifetimes for task in (life.first, life.last)}) > 1
        for held in encoding.memory.held
    )


Group = tuple[list[int], list[int], int]  # first and last tasks by microbatch, units held between


def _groups(encoding: Encoding, held: LimitedStore) -> list[Group]:
    """The lifetimes of a store by the classes that begin and end them."""
    row_of, amounts = encoding.bounds.order.row_of, dict[tuple[int, int], int]()
    for lifetime in held.lifetimes:
        if lifetime.first in row_of:
            pair = lifetime.first, lifetime.last
            amounts[pair] = amounts.get(pair, 0) + lifetime.amount
    return [
        (row_of[first].tolist(), row_of[last].tolist(), amount)
        for (first, last), amount in amounts.items()
    ]


def _cover(
    task: int, groups: list[Group], counts: list[tuple[int, int]], spare: int
) -> tuple[list[int], list[int]]:
    """Which tasks come before and which after, leaving out what weighs ``spare`` or less."""
    before, after = [], []
    rows = sorted(zip(groups, counts, strict=True), key=lambda row: row[0][2] * _open(row[1]))
    for (firsts, lasts, amount), (begun, ended) in rows:
        left_out = min(spare // amount, begun - ended)
        if task in firsts[:begun]:
            left_out = min(left_out, begun - ended - 1)
        spare -= left_out * amount
        if begun - ended > left_out:
            before.append(firsts[begun - 1])
            after.append(lasts[ended + left_out])
    return [other for other in before if other != task], after


def _open(count: tuple[int, int]) -> int:
    return count[0] - count[1]
