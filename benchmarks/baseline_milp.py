"""A plain big-M MILP on CBC, as the zero-bubble papers': what the modelling is worth.

An integer start per task, a 0-1 order variable for every pair of tasks of a rank with one M for
all, and for every acquisition the sum of all changes on that rank that are ordered before it. No
symmetry, no windows, no bound, no schedule to begin from.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from benchmarks.baseline_z3 import spans
from bubbleproof.solvers.engines import cbc
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

Row = list[tuple[pulp.LpVariable, int]]


def plain_milp(problem: Problem, objective: str, seconds: float) -> tuple[Ints | None, int]:
    """Starts per task (ticks), if any were found, and the lower bound claimed.

    Precondition: memory changes only at tasks that occupy the store's rank; an order of a pair
    then says which change comes first.
    """
    began = time.perf_counter()
    model = _Plain(problem, objective)
    answer = cbc.minimize(model.program, None, Budget(deadline=began + seconds, threads=1))
    bound = 0 if answer.bound is None else round(answer.bound)
    if answer.values is None:
        return None, bound
    return np.array([round(answer.values[s]) for s in model.start], dtype=np.int64), bound


class _Plain:
    def __init__(self, problem: Problem, objective: str) -> None:
        self.problem = problem
        self.duration: list[int] = problem.duration.tolist()
        self.horizon = sum(self.duration) + int(np.maximum(problem.edges.lag, 0).sum())
        self.program = pulp.LpProblem("plain", pulp.LpMinimize)
        self.start = [self._integer(f"s{t}", self.horizon) for t in range(problem.num_tasks)]
        self.before: dict[tuple[int, int], pulp.LpVariable] = {}
        edges = problem.edges
        for a, b, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        ):
            self._require([(self.start[b], 1), (self.start[a], -1)], self.duration[a] + lag)
        for resource in range(len(problem.resources)):
            tasks = problem.occupancy.task[problem.occupancy.resource == resource]
            for pair in combinations(tasks.tolist(), 2):
                self._exclude(*pair)
        self._add_memory()
        self._add_objective(objective)

    def _integer(self, name: str, most: int) -> pulp.LpVariable:
        return self.program.add_variable(name, 0, most, cat=pulp.LpInteger)

    def _require(self, row: Row, least: int) -> None:
        total: dict[pulp.LpVariable, int] = {}
        for variable, weight in row:
            total[variable] = total.get(variable, 0) + weight
        expression = pulp.LpAffineExpression(total)
        self.program.addConstraint(
            pulp.LpConstraint(expression, sense=pulp.LpConstraintGE, rhs=least)
        )

    def _exclude(self, a: int, b: int) -> None:
        """Either start(b) >= end(a), where the variable is 1, or start(a) >= end(b)."""
        first, m = self._integer(f"o{a}_{b}", 1), self.horizon
        self.before[a, b] = first
        gap: Row = [(self.start[b], 1), (self.start[a], -1)]
        self._require([*gap, (first, -m)], self.duration[a] - m)
        self._require([*((v, -w) for v, w in gap), (first, m)], self.duration[b])

    def _add_memory(self) -> None:
        events = self.problem.events
        for number, store in enumerate(self.problem.stores):
            if store.capacity is None:
                continue
            rows = np.flatnonzero(events.store == number).tolist()
            changes = [(int(events.task[r]), int(events.delta[r]), r) for r in rows]
            for task, delta, row in changes:
                if delta > 0 and not events.at_end[row]:
                    self._fits(task, changes, store.capacity - store.base)

    def _fits(self, at: int, changes: list[tuple[int, int, int]], room: int) -> None:
        """What is ordered before the start of ``at``, and what happens then, is within the room."""
        terms: Row = []
        for task, delta, row in changes:
            if task == at:
                room -= 0 if self.problem.events.at_end[row] else delta
            elif (task, at) in self.before:
                terms.append((self.before[task, at], -delta))
            else:
                room -= delta
                terms.append((self.before[at, task], delta))
        self._require(terms, -room)

    def _add_objective(self, objective: str) -> None:
        goal = self._integer("goal", self.horizon)
        self.program.setObjective(pulp.LpAffineExpression({goal: 1}))
        for tasks, work in spans(self.problem, objective):
            first = self._integer(f"first{tasks[0]}", self.horizon)
            for task in tasks:
                self._require([(self.start[task], 1), (first, -1)], 0)
                end = self.duration[task]
                self._require([(goal, 1), (self.start[task], -1), (first, 1)], end - work)
