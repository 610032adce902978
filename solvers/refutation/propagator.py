"""All rules of propagation together, to their fixpoint."""

from __future__ import annotations

from math import inf

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget
from bubbleproof.solvers.refutation.overloads import avoid_overload, chains
from bubbleproof.solvers.refutation.sequencing import sequence
from bubbleproof.solvers.refutation.windows import Event, Windows
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

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
