"""The rows of a schedule, located in its problem: what every rule looks at.

A row that names no task of the problem is *foreign*. A task that stands several times is timed by
its first row, so that one mistake is reported by one rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.explain.grid import step_grid, time_grid
from bubbleproof.verify.verdict import Finding, Rule, Violation

SHOWN = 3  # counterexamples printed per kind of offence; all are counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """A schedule's rows located in the problem: ``task`` per row (``NONE`` for foreign ones)."""

    problem: Problem
    schedule: Schedule
    task: Ints
    start: Ints  # per task, of its first row; meaningless where not ``present``
    present: Bools
    timed: bool

    @classmethod
    def of(cls, problem: Problem, schedule: Schedule, *, timed: bool = True) -> Rows:
        task = problem.locate(schedule.program.actions)
        known = np.flatnonzero(task != NONE)[::-1]  # the last write wins: the first row
        start = np.zeros(problem.num_tasks, dtype=np.int64)
        present = np.zeros(problem.num_tasks, dtype=bool)
        start[task[known]] = schedule.start[known]
        present[task[known]] = True
        return cls(
            problem=problem,
            schedule=schedule,
            task=task,
            start=start,
            present=present,
            timed=timed,
        )

    def rows_of(self, *tasks: int) -> Ints:
        """The rows on which any of the tasks stands."""
        return np.flatnonzero(np.isin(self.task, tasks))

    def name(self, task: int) -> str:
        return self.problem.label(task)

    def violation(self, rule: Rule, message: str, rows: Ints, at: int | None) -> Violation:
        """A violation with the grid around the given rows of the schedule."""
        picture = ""
        if len(rows):
            picture = (
                time_grid(self.problem, self.schedule, self.task, rows)
                if self.timed
                else step_grid(self.problem, self.schedule.program, rows)
            )
        labels = tuple(self.schedule.program.actions.label(row) for row in rows.tolist())
        return Violation(rule=rule, tasks=labels, at=at, message=message, picture=picture)

    @property
    def width(self) -> int:
        """One more than the highest resource of the problem and of the schedule."""
        listed = self.schedule.program.resource
        return max(len(self.problem.resources), int(listed.max(initial=0)) + 1)

    def pair(self, task: Ints, resource: Ints) -> Ints:
        """One integer per (task, resource); ``divmod`` by ``width`` takes it apart."""
        return task * self.width + resource


def finding(rule: Rule, count: int, violations: list[Violation]) -> Finding:
    """The finding of a rule that was violated ``count`` times, with the first counterexamples."""
    return Finding(rule=rule, count=count, violations=tuple(violations))
