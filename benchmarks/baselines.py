"""Plain encodings, as papers use them, with none of the modelling: what the modelling is worth.

- a big-M MILP on CBC, as the zero-bubble papers': an integer start per task, a 0-1 order variable
  for every pair of tasks of a rank with one M for all, and for every acquisition the sum of all
  changes on that rank that are ordered before it;
- z3, as schedule search does (Tessel's): integer starts, precedences, a disjunction for every pair
  of tasks of a resource, and for every acquisition the sum of all changes that happen by then;
  ``z3.Optimize`` minimises. It shares nothing with ``bubbleproof.solvers``.

No symmetry, no windows, no bound, no schedule to begin from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.solvers.engines import cbc
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import NONE, Ints
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
        for a, b, lag in precedences(problem):
            self._require([(self.start[b], 1), (self.start[a], -1)], self.duration[a] + lag)
        for pair in rivals(problem):
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


def plain_z3(problem: Problem, objective: str, seconds: float) -> tuple[Ints | None, int]:
    """Starts per task (ticks), if any were found, and the lower bound claimed."""
    optimize = z3.Optimize()
    optimize.set(timeout=max(1, int(1000 * seconds)), ctrl_c=False)  # Ctrl-C stays Python's
    start = [z3.Int(f"s{task}") for task in range(problem.num_tasks)]
    end = [begin + int(ticks) for begin, ticks in zip(start, problem.duration, strict=True)]
    optimize.add([begin >= 0 for begin in start])
    for before, after, lag in precedences(problem):
        optimize.add(start[after] >= end[before] + lag)
    for a, b in rivals(problem):
        optimize.add(z3.Or(start[b] >= end[a], start[a] >= end[b]))
    _add_memory(optimize, problem, start, end)
    goal = z3.Int("goal")
    for tasks, work in spans(problem, objective):
        first = z3.Int(f"first{tasks[0]}")
        for task in tasks:
            optimize.add(first <= start[task], goal >= end[task] - first - work)
    aim = optimize.minimize(goal)
    if optimize.check() == z3.sat:
        model = optimize.model()
        found = [model.eval(s, model_completion=True).as_long() for s in start]
        return np.array(found, dtype=np.int64), optimize.lower(aim).as_long()
    lower = optimize.lower(aim)
    return None, lower.as_long() if z3.is_int_value(lower) else 0


def precedences(problem: Problem) -> Iterator[tuple[int, int, int]]:
    """(before, after, lag) of each edge."""
    edges = problem.edges
    return zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)


def rivals(problem: Problem) -> Iterator[tuple[int, int]]:
    """Every pair of tasks of a resource."""
    for resource in range(len(problem.resources)):
        tasks = problem.occupancy.task[problem.occupancy.resource == resource]
        yield from combinations(tasks.tolist(), 2)


def spans(problem: Problem, objective: str) -> list[tuple[list[int], int]]:
    """The sets of tasks whose span counts, each with the work to subtract (``span_idle``)."""
    if objective == "makespan":
        return [(np.flatnonzero(problem.rank_of_task != NONE).tolist(), 0)]
    ranks = [np.flatnonzero(problem.rank_of_task == rank) for rank in range(problem.num_ranks)]
    return [(tasks.tolist(), int(problem.duration[tasks].sum())) for tasks in ranks if len(tasks)]


def _add_memory(
    optimize: z3.Optimize, problem: Problem, start: list[z3.ArithRef], end: list[z3.ArithRef]
) -> None:
    """At each acquisition, everything that has happened by then fits."""
    events = problem.events
    for number, store in enumerate(problem.stores):
        rows = np.flatnonzero(events.store == number).tolist()
        moments = [(end if events.at_end[row] else start)[int(events.task[row])] for row in rows]
        deltas = [int(events.delta[row]) for row in rows]
        for at, delta in zip(moments, deltas, strict=True):
            if delta > 0 and store.capacity is not None:
                held = [
                    z3.If(moment <= at, change, 0)
                    for moment, change in zip(moments, deltas, strict=True)
                ]
                optimize.add(store.base + z3.Sum(held) <= store.capacity)
