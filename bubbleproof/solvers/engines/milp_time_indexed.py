"""The time-indexed formulation: for each task and instant, whether the task has started by then.

``by(i, t)`` is 0 before the start of i and 1 from then on: a step, whose differences are the usual
"i starts at t". Precedences are inequalities between two of them, one for each instant; at each
instant the tasks running on a resource are at most one, and each store's load is within its
limits. There is no big M, but the size grows with the length of the windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.milp import MilpModel, Term
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.solvers.memory_rules import Held, Stair
from bubbleproof.theory.model.actions import Ints


class TimeIndexedModel(MilpModel):
    """Steps of starts."""

    def __init__(self, encoding: Encoding, budget: Budget | None = None) -> None:
        super().__init__(encoding, budget)
        self.step = [
            [self.integer(f"x{task}_{t}", 0, 1) for t in range(low, high)]
            for task, (low, high) in enumerate(zip(self.earliest, self.latest, strict=True))
        ]
        for steps in self.step:
            for now, then in pairwise(steps):
                self.require([(1, then), (-1, now)], 0)
        ends = (high + ticks for high, ticks in zip(self.latest, self.duration, strict=True))
        self.instants = range(min(self.earliest, default=0), max(ends, default=0) + 1)

    def by(self, weight: int, task: int, instant: int) -> tuple[list[Term], int]:
        """``weight`` if the task has started by the instant, else 0, as terms and a constant."""
        if instant < self.earliest[task]:
            return [], 0
        if instant >= self.latest[task]:
            return [], weight
        return [(weight, self.step[task][instant - self.earliest[task]])], 0

    def at_least(self, least: int, parts: Sequence[tuple[list[Term], int]]) -> None:
        """The sum of the parts is ``least`` or more; nothing is added where it must be."""
        terms = [term for part, _ in parts for term in part]
        least -= sum(constant for _, constant in parts)
        if sum(min(0, weight) for weight, _ in terms) < least:
            self.require(terms, least)

    def start_of(self, task: int, sign: int = 1) -> tuple[list[Term], int]:
        return [(-sign, step) for step in self.step[task]], sign * self.latest[task]

    def precede(self, before: int, after: int, lag: int) -> None:
        for t in range(self.earliest[after], self.latest[after] + 1):
            then = t - lag - self.duration[before]
            self.at_least(0, [self.by(1, before, then), self.by(-1, after, t)])

    def exclude(self, resource: int) -> None:
        tasks: list[int] = self.encoding.tasks_on(resource).tolist()
        instants = [task for task in tasks if not self.duration[task]]
        for t in self.instants:
            self.at_least(-1, [part for task in tasks for part in self._runs(task, t, 0)])
            inside = [part for task in tasks for part in self._runs(task, t, 1)]
            for task in instants:
                self.at_least(-1, [*inside, self.by(-1, task, t), self.by(1, task, t - 1)])

    def _runs(self, task: int, t: int, least: int) -> list[tuple[list[Term], int]]:
        """-1 if the task started ``least`` ticks ago or more and has not ended at instant t."""
        if self.duration[task] <= least:
            return []
        return [self.by(-1, task, t - least), self.by(1, task, t - self.duration[task])]

    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""
        self.precede_all(self.encoding.memory_edges)
        for stair in self.encoding.memory.stairs:
            self._add_stair(stair)
        for held in self.encoding.memory.held:
            self._add_held(held)
        for store in self.encoding.memory.watched:
            self._add_watched(store)

    def _add_stair(self, stair: Stair) -> None:
        for t in range(self.earliest[stair.later], self.latest[stair.later] + 1):
            ended = [self.by(1, task, t - self.duration[task]) for task in stair.either]
            self.at_least(0, [*ended, self.by(-1, stair.later, t)])

    def _add_held(self, held: Held) -> None:
        for t in self.instants:
            parts = []
            for hold in held.holds:
                parts.append(self.by(-hold.amount, hold.first, t))
                parts.append(self.by(hold.amount, hold.last, t - self.duration[hold.last]))
            self.at_least(-held.room, parts)

    def _add_watched(self, number: int) -> None:
        events, store = self.problem.events, self.problem.stores[number]
        changes = [
            (int(events.delta[row]), int(events.task[row]), bool(events.at_end[row]))
            for row in (events.store == number).nonzero()[0].tolist()
        ]
        for t in self.instants:
            for sign, limit in ((1, 0), (-1, store.capacity)):
                if limit is not None:
                    parts = [
                        self.by(sign * delta, task, t - (self.duration[task] if at_end else 0))
                        for delta, task, at_end in changes
                    ]
                    self.at_least(sign * (limit - store.base), parts)

    def values_of(self, start: Ints) -> dict[pulp.LpVariable, int]:
        return {
            step: int(begin <= self.earliest[task] + offset)
            for task, begin in enumerate(start.tolist())
            for offset, step in enumerate(self.step[task])
        }
