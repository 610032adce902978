"""All rules of propagation together, to their fixpoint."""

from __future__ import annotations

import time
from math import inf

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.holding import chains, hold
from bubbleproof.solvers.sequencing import sequence
from bubbleproof.solvers.windows import Windows
from bubbleproof.theory.actions import Ints
from bubbleproof.theory.problem import Problem


class OutOfTime(Exception):  # noqa: N818 - ends a search, not an error of the caller
    """The budget of a search is spent."""


class Propagator:
    """Brings windows to their fixpoint; knows what of the problem the rules need.

    ``tasks`` lists the tasks that take time per resource that has two or more, and ``homes`` the
    places in this list where a task stands.
    ``deadline`` is a moment of ``time.perf_counter``.
    """

    def __init__(self, problem: Problem, given: Bounds, deadline: float = inf) -> None:
        self.problem, self.deadline = problem, deadline
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

    def run(self, windows: Windows) -> bool:
        """Whether the windows can be refuted by rules alone. Raises ``OutOfTime``."""
        while windows.failure is None and windows.changed:
            if time.perf_counter() > self.deadline:
                raise OutOfTime
            touched = self._touched(windows)
            windows.changed.clear()
            for resource in touched:
                sequence(windows, self.tasks[resource], deep=False)
            if not windows.changed and windows.failure is None:
                for resource in range(len(self.tasks)):
                    sequence(windows, self.tasks[resource], deep=True)
            if not windows.changed and windows.failure is None:
                for store in self.chains:
                    hold(windows, store, self.homes)
        return windows.failure is not None

    def _touched(self, windows: Windows) -> list[int]:
        changed = (t for t in windows.changed if t < self.problem.num_tasks)
        return sorted({resource for task in changed for resource in self.homes[task]})
