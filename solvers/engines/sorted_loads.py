"""The load of a store in CP-SAT, change by change, where each class of changes is sorted in time.

Whenever load is acquired, the changes that are not later are counted. A boolean says "not later";
along a sorted class these are monotone. Where precedences decide it there is no boolean, and where
both tasks occupy one resource, "later" means that the other task starts after this one ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.theory.model.actions import Bools

Literal = cp_model.IntVar | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Changes of a store by ``delta`` at the starts or ends of sorted tasks.

    Task i is ``members[i]`` with start ``start[i]``; it is there if ``there[i]`` (``there`` None:
    all are). ``is_reversed``: the last one stands first. Ticks of all tasks: ``duration``.
    """

    members: tuple[int, ...]
    start: tuple[cp_model.IntVar, ...]
    there: tuple[cp_model.IntVar, ...] | None
    duration: int
    at_end: bool
    delta: int
    is_reversed: bool
    resources: frozenset[int]

    @property
    def shift(self) -> int:
        """Ticks from the start of a task to its change."""
        return self.duration if self.at_end else 0


class SortedLoads:
    """Adds stores to a model. ``prior[b, a]``: task b, if there, starts when a has ended."""

    def __init__(self, model: cp_model.CpModel, prior: Bools) -> None:
        self.model, self.prior = model, prior

    def add(self, series: Sequence[Series], room: int) -> None:
        """At most ``room`` units once everything of each moment has happened.

        Parameters
        ----------
        room
            Memory units, 0 or more.
        """
        for rising in series:
            if rising.delta > 0:
                for i in range(len(rising.members)):
                    self._add_moment(rising, i, series, room)

    def _add_moment(self, rising: Series, i: int, series: Sequence[Series], room: int) -> None:
        known, terms = 0, []
        for other in series:
            if other is rising:
                known += rising.delta * (1 if rising.is_reversed else i + 1)
                if rising.is_reversed and rising.there is not None:
                    terms += [rising.delta * there for there in rising.there[i + 1 :]]
                continue
            for literal in self._counted(rising, i, other):
                if literal is True:
                    known += other.delta
                elif literal is not False:
                    terms.append(other.delta * literal)
        rule = self.model.add(cp_model.LinearExpr.sum(terms) + known <= room)
        if rising.there is not None:
            rule.only_enforce_if(rising.there[i])

    def _counted(self, rising: Series, i: int, other: Series) -> list[Literal]:
        """For each change of ``other`` whether it is there and not later than this moment."""
        by_then = self._by_then(rising, i, other)
        if other.there is None:
            return by_then
        return [
            self._both(literal, there) for literal, there in zip(by_then, other.there, strict=True)
        ]

    def _both(self, literal: Literal, there: cp_model.IntVar) -> Literal:
        if literal is True:
            return there
        if literal is False:
            return False
        both = self.model.new_bool_var("")
        self.model.add_bool_and([literal, there]).only_enforce_if(both)
        self.model.add_bool_or([literal.negated(), there.negated(), both])
        return both

    def _by_then(self, rising: Series, i: int, other: Series) -> list[Literal]:
        found: list[Literal] = []
        for k in range(len(other.members)):
            decided = self._decided(rising, i, other, k)
            found.append(self._compare(rising, i, other, k) if decided is None else decided)
            if k:
                self._add_monotone(found[k - 1], found[k], other, k)
        return found

    def _decided(self, rising: Series, i: int, other: Series, k: int) -> bool | None:
        """Whether change k of ``other`` is by then, where precedences tell."""
        this, that = rising.members[i], other.members[k]
        if this == that:
            return rising.at_end or not rising.duration
        if self.prior[this, that]:
            return True
        takes_time = (not rising.at_end and rising.duration) or (other.at_end and other.duration)
        return False if self.prior[that, this] and takes_time else None

    def _compare(self, rising: Series, i: int, other: Series, k: int) -> cp_model.IntVar:
        by_then = self.model.new_bool_var("")
        moment = rising.start[i] + rising.shift
        change = other.start[k] + other.shift
        self.model.add(change <= moment).only_enforce_if(by_then)
        later = [by_then.negated()]
        if not rising.at_end and other.at_end and rising.resources & other.resources:
            moment = rising.start[i] + rising.duration
            change = other.start[k] + 1
            later += [s.there[n] for s, n in ((rising, i), (other, k)) if s.there is not None]
        self.model.add(change > moment).only_enforce_if(later)
        return by_then

    def _add_monotone(self, before: Literal, literal: Literal, other: Series, k: int) -> None:
        """If the later of two changes is by then, so is the earlier."""
        if isinstance(before, bool) or isinstance(literal, bool):
            return
        one, then = (before, literal) if other.is_reversed else (literal, before)
        rule = self.model.add_implication(one, then)
        if other.there is not None:
            rule.only_enforce_if(other.there[k])


def closure(num_tasks: int, pairs: Iterable[tuple[int, int]]) -> Bools:
    """prior[b, a]: (a, b) is one of the pairs or follows from them. No cycle among them.

    Parameters
    ----------
    num_tasks
        Tasks are 0 to ``num_tasks`` - 1.
    pairs
        (before, after), numbers of tasks.
    """
    after: list[list[int]] = [[] for _ in range(num_tasks)]
    waiting = [0] * num_tasks
    for a, b in pairs:
        after[a].append(b)
        waiting[b] += 1
    prior = np.zeros((num_tasks, num_tasks), dtype=np.bool_)
    ready = [task for task in range(num_tasks) if not waiting[task]]
    while ready:
        a = ready.pop()
        for b in after[a]:
            prior[b] |= prior[a]
            prior[b, a] = True
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    return prior
