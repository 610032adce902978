"""Schedules as plain lists of rows per resource, the form in which mutations edit them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule

Table = list[list[tuple[Action, int]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Specimen:
    """A problem and the rows of a schedule for it: ``rows[resource]`` lists (action, start)."""

    problem: Problem
    rows: Table
    claims: dict[str, ClaimedNumber]

    @classmethod
    def of(cls, problem: Problem, schedule: Schedule) -> Specimen:
        rows: Table = [[] for _ in problem.resources]
        program = schedule.program
        for i in range(len(program)):
            rows[int(program.resource[i])].append((program.actions[i], int(schedule.start[i])))
        return cls(problem=problem, rows=rows, claims=dict(schedule.claims))

    def schedule(self) -> Schedule:
        flat = [(r, action, start) for r, row in enumerate(self.rows) for action, start in row]
        return Schedule(
            program=Program(
                actions=ActionTable.from_actions(action for _, action, _ in flat),
                resource=np.array([r for r, _, _ in flat], dtype=np.int64),
            ),
            start=np.array([start for _, _, start in flat], dtype=np.int64),
            claims=self.claims,
        )

    def with_rows(self, rows: Table) -> Specimen:
        return replace(self, rows=rows)

    def copied(self) -> Table:
        return [list(row) for row in self.rows]

    def with_claims(self, claims: dict[str, ClaimedNumber]) -> Specimen:
        return replace(self, claims=claims)

    def with_store(self, at: int, store: Store) -> Specimen:
        stores = self.problem.stores
        changed = replace(self.problem, stores=(*stores[:at], store, *stores[at + 1 :]))
        return replace(self, problem=changed)

    def task(self, action: Action) -> int:
        """The task of an action, the first of several; ``KeyError`` without one."""
        return _tasks(self.problem.actions)[action]

    def ticks(self, action: Action) -> int:
        return int(self.problem.duration[self.task(action)])

    def places(self) -> list[tuple[int, int]]:
        """(resource, position) of every row."""
        return [(r, i) for r, row in enumerate(self.rows) for i in range(len(row))]

    def compute_places(self) -> list[tuple[int, int]]:
        return [(r, i) for r, i in self.places() if r < self.problem.num_ranks]

    def neighbours(self) -> list[tuple[int, int]]:
        """(resource, position) of every row that another follows."""
        return [(r, i) for r, i in self.places() if i + 1 < len(self.rows[r])]

    def retimed(self, start_of: dict[Action, int]) -> Table:
        """The rows with some tasks moved, on all their resources."""
        return [[(a, start_of.get(a, start)) for a, start in row] for row in self.rows]

    def starts(self) -> dict[Action, int]:
        return {action: start for row in self.rows for action, start in row}


@lru_cache(maxsize=4)
def _tasks(actions: ActionTable) -> dict[Action, int]:
    """The first task of each action: most mutants of a specimen leave its tasks alone."""
    tasks: dict[Action, int] = {}
    for task, action in enumerate(actions):
        tasks.setdefault(action, task)
    return tasks
