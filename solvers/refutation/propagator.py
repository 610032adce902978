"""All rules of propagation together, to their fixpoint.

On one resource, which does one task at a time: *order*: i runs after u where i before u would end
too late. *Push*: tasks S that all run before i make start(i) >= est(S) + p(S). *Edge finding*
(Carlier and Pinson 1989): i runs after all of O if est(O + i) + p(O) + p(i) > lct(O). est, lct, p:
earliest start, latest end, duration; of a set the least, the greatest, the sum. Each is also
applied with time reversed, all tasks of the resource at once in matrices [tasks, tasks]."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget
from bubbleproof.solvers.refutation.overloads import avoid_overload, chains
from bubbleproof.solvers.refutation.windows import GIVEN, UNKNOWN, Event, Windows
from bubbleproof.theory.model.actions import Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Lemma

MOST_DEEP = 600  # tasks of a resource up to which edge finding pays


class OutOfTime(Exception):  # noqa: N818 - ends a search, not an error of the caller
    """The budget of a search is spent."""


class Propagator:
    """Brings windows to their fixpoint; knows what of the problem the rules need.

    ``tasks`` lists the tasks that take time per resource that has two or more, and ``homes`` the
    places in this list where a task stands; ``stores`` are those in which the resource's tasks act.
    ``deadline`` is a moment of ``budget`` (seconds of ``time.perf_counter`` without one).
    """

    def __init__(
        self,
        problem: Problem,
        given: Bounds,
        deadline: float = inf,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.problem, self.deadline, self.budget = problem, deadline, budget
        self.chains = chains(problem, given.order)
        occupancy = problem.occupancy
        self.homes: list[list[int]] = [[] for _ in range(problem.num_tasks)]
        self.tasks: list[Ints] = []
        for resource in range(len(problem.resources)):
            tasks = occupancy.task[occupancy.resource == resource]
            tasks = tasks[problem.duration[tasks] > 0]
            if len(tasks) < 2:
                continue
            self.tasks.append(tasks)
            for task in tasks.tolist():
                self.homes[task].append(len(self.tasks) - 1)
        self.stores = [
            [number for number, store in enumerate(self.chains) if np.isin(tasks, store.task).any()]
            for tasks in self.tasks
        ]

    def run(self, windows: Windows) -> Event | None:
        """The failure by which rules alone refute the windows, if they do. Raises ``OutOfTime``.

        The dearer rules wait until the cheaper ones have nothing left to say.
        """
        windows.flush()
        stale: set[int] = set()
        full: set[int] = set()
        while windows.failure is None:
            self._watch()
            if touched := self._touched(windows):
                stale |= touched
                full |= {store for resource in touched for store in self.stores[resource]}
                for resource in sorted(touched):
                    self._watch()
                    sequence(windows, self.tasks[resource], deep=False)
            elif stale:
                tasks = self.tasks[stale.pop()]
                if len(tasks) <= MOST_DEEP:
                    sequence(windows, tasks, deep=True)
            elif full:
                avoid_overload(windows, self.chains[full.pop()], self.homes)
                windows.flush()
            else:
                return None
        return windows.failure

    def _watch(self) -> None:
        if self.budget.is_past(self.deadline):
            raise OutOfTime

    def _touched(self, windows: Windows) -> set[int]:
        changed = (t for t in windows.changed if t < self.problem.num_tasks)
        touched = {resource for task in changed for resource in self.homes[task]}
        windows.changed.clear()
        return touched


def sequence(windows: Windows, tasks: Ints, *, deep: bool) -> None:
    """One pass over a resource's tasks (all of positive duration), both ways in time.

    ``deep`` adds edge finding.

    Parameters
    ----------
    tasks
        Indices of tasks of one resource, all of positive duration.
    deep
        Whether edge finding is tried as well.
    """
    for way in (0, 1):
        if windows.failure is None:
            _Pass(windows, tasks, way).run(deep)
            windows.flush()


class _Pass:
    """One way in time: ``earlier[i, u]`` says that u runs before i (after, when reversed)."""

    def __init__(self, windows: Windows, tasks: Ints, way: int) -> None:
        self.windows, self.tasks, self.way = windows, tasks, way
        self.names: list[int] = tasks.tolist()
        bounds = windows.bounds
        self.near = np.array([bounds[way][t] for t in self.names], dtype=np.int64)
        self.far = np.array([bounds[1 - way][t] for t in self.names], dtype=np.int64)
        self.ticks = windows.problem.duration[tasks]
        prior = windows.prior[np.ix_(tasks, tasks)]
        self.known: Bools = prior if way == 0 else prior.T
        least = (self.near + self.ticks)[:, None] + (self.ticks + self.far)[None, :]
        self.late = least > 0
        np.fill_diagonal(self.late, False)
        self.earlier: Bools = self.known | self.late

    def run(self, deep: bool) -> None:
        if deep:
            self._find_edges()
        if self.windows.failure is None:
            self._push()

    def _push(self) -> None:
        order = np.argsort(-self.near, kind="stable")
        earlier = self.earlier[:, order]
        work = np.cumsum(earlier * self.ticks[order], axis=1)
        reach = np.where(earlier, work + self.near[order], UNKNOWN)
        best = reach.max(axis=1)
        for i in np.flatnonzero(best > self.near).tolist():
            chosen = self.earlier[i] & (self.near >= self.near[order[int(reach[i].argmax())]])
            members = np.flatnonzero(chosen).tolist()
            names = tuple(self.names[u] for u in members)
            step = self.windows.at_least(self.way, self.names[i], int(best[i]), crowd=names)
            event = self.windows.deduce(self._reasons(i, members), step)
            self.windows.raise_(self.way, self.names[i], int(best[i]), event)

    def _reasons(self, i: int, members: Iterable[int], *, ordered: bool = True) -> set[int]:
        """The events behind est(S), and behind the order of S and i unless that is shown anew."""
        near, far = self.windows.causes[self.way], self.windows.causes[1 - self.way]
        reasons = set()
        for u in members:
            reasons.add(near[self.names[u]])
            if not ordered:
                reasons.add(far[self.names[u]])
            elif self.known[i, u]:
                reasons.add(self.windows.prior_event.get(self._pair(u, i), GIVEN))
            else:
                reasons |= {far[self.names[u]], near[self.names[i]]}
        return reasons - {GIVEN} if ordered else (reasons | {near[self.names[i]]}) - {GIVEN}

    def _pair(self, u: int, i: int) -> tuple[int, int]:
        """The order of u before i, in this way of time."""
        return (self.names[i], self.names[u]) if self.way else (self.names[u], self.names[i])

    def _find_edges(self) -> None:
        """For each deadline and task i: the set O of tasks due by then that must precede i."""
        usable = np.flatnonzero((self.near > UNKNOWN // 2) & (self.far > UNKNOWN // 2))
        by_start = usable[np.argsort(self.near[usable], kind="stable")]
        deadline = np.unique(-self.far[usable])
        due = -self.far[by_start][:, None] <= deadline[None, :]
        work = np.cumsum((due * self.ticks[by_start][:, None])[::-1], axis=0)[::-1]
        start = self.near[by_start]
        gap = np.where(due, deadline[None, :] - start[:, None] - work, -UNKNOWN)
        least_gap = np.minimum.accumulate(gap, axis=0)
        full = np.argwhere((gap < 0) & (np.cumsum(due[::-1], axis=0)[::-1] > 1))
        if len(full):  # the tasks due by then cannot all run: then one of them cannot be last
            first, column = full[0].tolist()
            members = by_start[first:][due[first:, column]].tolist()
            self._follow_all(members[-1], members[:-1])
            return
        ticks = self.ticks[by_start]
        inner = least_gap < ticks[:, None]  # O starts no later than i
        outer = (start + ticks)[:, None] + work > deadline[None, :]  # O starts no earlier than i
        found = (inner | (outer & (work > 0))) & ~due
        found &= self._earliest_open()[by_start][:, None] <= deadline[None, :]
        for k, column in np.argwhere(found).tolist():
            first = int(np.argmax(gap[:, column] < ticks[k])) if inner[k, column] else k
            members = by_start[first:][due[first:, column]].tolist()
            i = int(by_start[k])
            if self.earlier[i, members].all():
                continue
            self._follow_all(i, members)
            if self.windows.failure is not None:
                return

    def _earliest_open(self) -> Ints:
        """Per task the least deadline of the tasks in no order with it."""
        is_open = ~(self.earlier | self.earlier.T)
        np.fill_diagonal(is_open, False)
        deadlines: Ints = np.where(is_open, -self.far, -UNKNOWN).min(axis=1)
        return deadlines

    def _follow_all(self, i: int, members: list[int]) -> None:
        names = tuple(self.names[u] for u in members)
        value = min(int(self.near[u]) for u in members) + sum(int(self.ticks[u]) for u in members)
        pairs = [self._pair(u, i) for u in members]
        shown = [
            Lemma(literals=(("<", *pair),), crowd=(*names, self.names[i]))
            for u, pair in zip(members, pairs, strict=True)
            if not self.earlier[i, u]
        ]
        push = self.windows.at_least(self.way, self.names[i], value, crowd=names)
        event = self.windows.deduce(self._reasons(i, members, ordered=False), *shown, push)
        for u, pair in zip(members, pairs, strict=True):
            self.windows.learn(*pair, event)
            self.known[i, u] = self.earlier[i, u] = True
        self.windows.raise_(self.way, self.names[i], value, event)
