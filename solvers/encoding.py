"""The encoding: every constraint family of a problem, worked out once for all engines.

An engine (``solvers.engines``) turns each family into its own language, by a method of the same
name:

- ``dependencies``: start(after) >= end(before) + lag;
- ``index_order``: the order edges of ``verify.certificates.index_order`` (between identical
microbatches);
- ``exclusion``: one task at a time on each rank, and ``links`` the same for every other resource;
- ``memory``: memory edges, and what ``solvers.memory_rules`` finds beyond them;
- ``horizon``: the objective, and the window of each start, ``earliest`` to ``latest``.

``limit`` is the largest objective value of interest. Where all tasks compute and the objective is
the makespan, it bounds every start. Otherwise (transfers may lie outside the makespan) the sum of
all durations and lags does: in a shortest schedule there is no pause in which nothing runs and
nothing is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.memory_rules import MemoryRules, memory_rules
from bubbleproof.solvers.starts import behind, joined
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Edges, Problem

Objective = Literal["makespan", "span_idle"]


@dataclass(frozen=True, slots=True)
class TaskMoment:
    """The start of a task or, where ``at_end``, its end."""

    task: int
    at_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A store's load once everything of the moment ``at`` has happened.

    It is ``known`` units and, for each of the ``undecided`` (moment, delta), delta more if that
    moment is not after ``at``. It must lie within ``least`` and ``most`` (None: no limit).
    """

    store: int
    at: TaskMoment
    known: int
    undecided: tuple[tuple[TaskMoment, int], ...]
    least: int | None
    most: int | None


def longest_makespan(problem: Problem) -> int:
    """No shortest schedule takes longer (ticks), transfers outside its computation included."""
    return int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())


class Encoding:
    """The constraint families of a problem for objective values up to ``limit`` (None for any)."""

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        *,
        objective: Objective = "makespan",
        limit: int | None = None,
        least: int = 0,
        extra: Edges | None = None,
        windows: tuple[Ints, Ints] | None = None,
    ) -> None:
        """``least`` is a bound on the objective; ``extra`` are precedences beside the problem's.

        ``windows`` are earliest and latest starts in some best schedule within the limit, per task
        in ticks; they count where the limit bounds every start.
        """
        self.problem, self.bounds, self.objective = problem, bounds, objective
        self.extra = extra or Edges()
        longest = longest_makespan(problem)
        self.limit = longest if limit is None else limit
        known = bounds.best.bound if bounds.best.objective == objective else 0
        self.least = max(least, known)
        self.only_compute = bool((problem.rank_of_task != NONE).all())
        bounded = objective == "makespan" and self.only_compute
        self.horizon = self.limit if bounded else longest
        self.earliest = bounds.heads
        self.latest: Ints = self.horizon - bounds.tails - problem.duration
        if bounded and windows is not None:
            self.earliest = np.maximum(self.earliest, windows[0])
            self.latest = np.minimum(self.latest, windows[1])

    @property
    def is_hopeless(self) -> bool:
        """Whether some task has no start left: no schedule is within the limit."""
        return bool((self.latest < self.earliest).any()) or any(
            not clause.either for clause in self.memory.clauses
        )

    @property
    def dependencies(self) -> Edges:
        """The problem's precedences and the extra ones."""
        return joined(self.problem.edges, self.extra)

    @property
    def index_order(self) -> Edges:
        return self.bounds.order.order_edges

    @property
    def memory_edges(self) -> Edges:
        return self.bounds.order.memory_edges

    @property
    def spans(self) -> list[tuple[list[int], int]]:
        """(tasks, work) of each part that the objective measures: last end - first start - work.

        For the makespan all computations, and no work; for ``span_idle`` those of each rank.
        """
        if self.objective == "makespan":
            return [(np.flatnonzero(self.problem.rank_of_task != NONE).tolist(), 0)]
        homes = [self.tasks_on(rank) for rank in self.ranks]
        return [(tasks.tolist(), int(self.problem.duration[tasks].sum())) for tasks in homes]

    @property
    def starts_at_0(self) -> bool:
        """Whether the first start of the one span is time 0."""
        return self.objective == "makespan" and self.only_compute

    @cached_property
    def memory(self) -> MemoryRules:
        """What the memory asks beyond its edges."""
        return memory_rules(self.problem, self.bounds.order)

    def tasks_on(self, resource: int) -> Ints:
        """The tasks that occupy a resource.

        Parameters
        ----------
        resource
            The resource's index.

        Returns
        -------
        Ints
            Indices of tasks.
        """
        occupancy = self.problem.occupancy
        tasks: Ints = occupancy.task[occupancy.resource == resource]
        return tasks

    @property
    def ranks(self) -> range:
        return range(self.problem.num_ranks)

    @property
    def links(self) -> range:
        """The resources that are no rank: links, NICs, copy engines, hosts."""
        return range(self.problem.num_ranks, len(self.problem.resources))

    @cached_property
    def _behind(self) -> list[int]:
        """For each task, as bits, those that are behind it."""
        return behind(self.problem.num_tasks, self.bounds.edges)

    def is_ordered(self, before: int, after: int) -> bool:
        """Whether ``after`` surely starts when ``before`` has ended, or later.

        Parameters
        ----------
        before, after
            Indices of tasks.
        """
        if (self._behind[before] >> after) & 1:
            return True
        end = int(self.latest[before] + self.problem.duration[before])
        return end <= int(self.earliest[after])

    def undecided_pairs(self, resource: int) -> list[tuple[int, int]]:
        """The pairs of tasks of a resource that both orders are open to.

        Parameters
        ----------
        resource
            The resource's index.

        Returns
        -------
        list[tuple[int, int]]
            Pairs of indices, the smaller one first in each.
        """
        return [
            (a, b)
            for a, b in combinations(self.tasks_on(resource).tolist(), 2)
            if not (self.is_ordered(a, b) or self.is_ordered(b, a))
        ]

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """The held and watched stores change by change, for engines without a cumulative."""
        found = []
        for held in self.memory.held:
            found += self._loads(held.store, from_below=False)
        for store in self.memory.watched:
            found += self._loads(store, from_below=True)
        return tuple(found)

    def _loads(self, store: int, *, from_below: bool) -> list[Load]:
        events, capacity = self.problem.events, self.problem.stores[store].capacity
        rows = np.flatnonzero((events.store == store) & (events.delta != 0)).tolist()
        changes = [
            (TaskMoment(int(events.task[r]), bool(events.at_end[r])), int(events.delta[r]))
            for r in rows
        ]
        loads = []
        for at in dict.fromkeys(moment for moment, _ in changes):
            rise = sum(delta for moment, delta in changes if moment == at)
            most = capacity if rise > 0 else None
            least = 0 if rise < 0 and from_below else None
            if most is not None or least is not None:
                loads.append(self._load(store, at, changes, least, most))
        return loads

    def _load(
        self,
        store: int,
        at: TaskMoment,
        changes: list[tuple[TaskMoment, int]],
        least: int | None,
        most: int | None,
    ) -> Load:
        known, undecided = self.problem.stores[store].base, []
        for moment, delta in changes:
            if self._not_after(moment, at):
                known += delta
            elif not self._after(moment, at):
                undecided.append((moment, delta))
        return Load(
            store=store, at=at, known=known, undecided=tuple(undecided), least=least, most=most
        )

    def _span(self, moment: TaskMoment) -> tuple[int, int]:
        """The earliest and the latest tick of a moment."""
        shift = int(self.problem.duration[moment.task]) if moment.at_end else 0
        return int(self.earliest[moment.task]) + shift, int(self.latest[moment.task]) + shift

    def _not_after(self, moment: TaskMoment, at: TaskMoment) -> bool:
        if moment.task == at.task:
            return at.at_end or not moment.at_end or not self.problem.duration[at.task]
        if (self._behind[moment.task] >> at.task) & 1:
            return True
        return self._span(moment)[1] <= self._span(at)[0]

    def _after(self, moment: TaskMoment, at: TaskMoment) -> bool:
        if moment.task == at.task:
            return not self._not_after(moment, at)
        takes_time = (not at.at_end and self.problem.duration[at.task]) or (
            moment.at_end and self.problem.duration[moment.task]
        )
        if takes_time and (self._behind[at.task] >> moment.task) & 1:
            return True
        return self._span(moment)[0] > self._span(at)[1]
