"""The rows of a schedule, located in its problem: what every rule looks at.

A row that names no task of the problem is *foreign*. A task that stands several times is timed by
its first row, so that one mistake is reported by one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.finding import Finding, Rule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """A schedule's rows located in the problem: ``task`` per row (``NONE`` for foreign ones).

    ``is_whole``: each task occupies one resource and stands there, once, and there is no other row.
    """

    problem: Problem
    schedule: Schedule
    task: Ints
    start: Ints  # per task, of its first row; meaningless where not ``present``
    present: Bools
    timed: bool
    is_whole: bool

    @classmethod
    def of(cls, problem: Problem, schedule: Schedule, *, timed: bool = True) -> Rows:
        """The rows of a schedule, each with the task of the problem that it names, if it names one.

        Parameters
        ----------
        timed
            Whether the starts of the rows mean anything.
        """
        task = problem.locate(schedule.program.actions)
        known = np.flatnonzero(task != NONE)[::-1]  # the last write wins: the first row
        start = np.zeros(problem.num_tasks, dtype=np.int64)
        present = np.zeros(problem.num_tasks, dtype=bool)
        start[task[known]] = schedule.start[known]
        present[task[known]] = True
        occupancy, resource = problem.occupancy, schedule.program.resource
        is_single = len(task) == len(occupancy.task) == problem.num_tasks and bool(present.all())
        return cls(
            problem=problem,
            schedule=schedule,
            task=task,
            start=start,
            present=present,
            timed=timed,
            is_whole=is_single and bool((resource == occupancy.resource[task]).all()),
        )

    def rows_of(self, *tasks: int) -> Ints:
        """The rows on which any of the tasks stands."""
        return np.flatnonzero(np.isin(self.task, tasks))

    def name(self, task: int) -> str:
        """The text of a task, as findings have it.

        Parameters
        ----------
        task
            The task's index.
        """
        return str(self.problem.actions[task])

    def breaches(self, rule: Rule, rows: Ints) -> Breaches:
        """A breach of the rule by each of the rows, at its start and on its resource.

        Parameters
        ----------
        rows
            Indices of rows of the schedule.
        """
        program, start = self.schedule.program, self.schedule.start

        def finding(number: int) -> Finding:
            row = int(rows[number])
            task = str(program.actions[row])
            return Finding(rule, (task,), int(start[row]), int(program.resource[row]))

        return Breaches(len(rows), finding)

    @property
    def width(self) -> int:
        """One more than the highest resource of the problem and of the schedule."""
        listed = self.schedule.program.resource
        return max(len(self.problem.resources), int(listed.max(initial=0)) + 1)

    def pair(self, task: Ints, resource: Ints) -> Ints:
        """One integer per (task, resource); ``divmod`` by ``width`` takes it apart.

        Parameters
        ----------
        task, resource
            Indices, of one shape.
        """
        return task * self.width + resource


@dataclass(frozen=True, slots=True)
class Breaches:
    """Breaches of one kind: how many, and the i-th as a finding, which is made when asked for.

    ``shown`` are the numbers of those that may be shown; the first few are where it is None.
    """

    count: int
    finding: Callable[[int], Finding]
    shown: Sequence[int] | None = None

    def __iter__(self) -> Iterator[Finding]:
        return map(self.finding, range(self.count))

    def first(self, most: int) -> list[Finding]:
        """The first few of those that may be shown.

        Parameters
        ----------
        most
            How many at most.
        """
        numbers = range(self.count) if self.shown is None else self.shown
        return [self.finding(number) for number in numbers[:most]]
