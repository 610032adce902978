"""Mixed-integer models of an encoding, built with PuLP; a formulation adds the variables.

Numbers reach a MIP solver as floats, and what it calls 1 may be 1 - 1e-6. Two things keep that out
of the results. Every start is an integer variable or a sum of them, so that a slack below one tick
disappears in rounding; and beyond ``TRUSTED_HORIZON`` ticks, where a big M can turn that tolerance
into a tick, the engine claims no bound. A schedule goes through the checker in any case.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.deadline import require_time
from bubbleproof.solvers.engines.engine import Budget, Model
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Edges

TRUSTED_HORIZON = 100_000  # ticks: times the solvers' integrality tolerance of 1e-6, a tenth

Term = tuple[int, pulp.LpVariable]
Values = Mapping[pulp.LpVariable, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a MIP solver says: ``values`` of its best solution, if any, and its dual ``bound``."""

    values: Mapping[pulp.LpVariable, float] | None = None
    is_infeasible: bool = False
    bound: float | None = None


class MilpModel(Model):
    """Minimise the objective; rows say ``sum of coefficient * variable >= least``."""

    def __init__(self, encoding: Encoding, budget: Budget | None = None) -> None:
        super().__init__(encoding)
        self.budget = budget
        self.program = pulp.LpProblem("schedule", pulp.LpMinimize)
        self.duration: list[int] = self.problem.duration.tolist()
        self.earliest: list[int] = encoding.earliest.tolist()
        self.latest: list[int] = encoding.latest.tolist()
        least = 0
        if encoding.objective == "makespan":
            least = min(encoding.bounds.best.bound, encoding.limit)
        self.goal = self.integer("goal", least, encoding.limit)
        self.program.setObjective(pulp.LpAffineExpression({self.goal: 1}))
        self.firsts: list[tuple[pulp.LpVariable, list[int]]] = []

    def integer(self, name: str, low: int, high: int) -> pulp.LpVariable:
        """A new integer variable."""
        return self.program.add_variable(name, low, high, cat=pulp.LpInteger)

    def require(self, terms: Iterable[Term], least: int) -> None:
        """A row; a variable may stand in it several times."""
        require_time(self.budget)
        row: dict[pulp.LpVariable, int] = {}
        for coefficient, variable in terms:
            row[variable] = row.get(variable, 0) + coefficient
        row = {variable: coefficient for variable, coefficient in row.items() if coefficient}
        if not row and least > 0:  # an empty row would be dropped on the way to the solver
            row, least = {self.goal: 1}, self.encoding.limit + 1
        expression = pulp.LpAffineExpression(row)
        self.program.addConstraint(
            pulp.LpConstraint(expression, sense=pulp.LpConstraintGE, rhs=least)
        )

    @abstractmethod
    def start_of(self, task: int, sign: int = 1) -> tuple[list[Term], int]:
        """``sign`` times the start of a task, as terms and a constant."""

    @abstractmethod
    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag."""

    @abstractmethod
    def exclude(self, resource: int) -> None:
        """One task at a time."""

    @abstractmethod
    def values_of(self, start: Ints) -> dict[pulp.LpVariable, int]:
        """Every variable's value in a schedule (ticks per task)."""

    def precede_all(self, edges: Edges) -> None:
        """start(after) >= end(before) + lag, for every edge."""
        for before, after, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        ):
            self.precede(before, after, lag)

    def add_horizon(self) -> None:
        """The objective, not above the limit."""
        if self.encoding.objective == "makespan":
            self._add_makespan()
        else:
            self._add_span_idle()

    def _add_makespan(self) -> None:
        """makespan >= end of any computation - start of any other; transfers do not count."""
        compute = np.flatnonzero(self.problem.rank_of_task != NONE).tolist()
        self._add_span(compute, 0, [] if self.encoding.only_compute else self._first(compute))

    def _add_span_idle(self) -> None:
        """span_idle >= last end - first start - work, on each rank."""
        for rank in self.encoding.ranks:
            tasks = self.encoding.tasks_on(rank).tolist()
            self._add_span(tasks, sum(self.duration[t] for t in tasks), self._first(tasks))

    def _add_span(self, tasks: Sequence[int], work: int, first: list[Term]) -> None:
        """goal >= last end - first start - work, over the tasks."""
        for task in tasks:
            terms, constant = self.start_of(task, sign=-1)
            self.require([(1, self.goal), *terms, *first], self.duration[task] - work - constant)

    def _first(self, tasks: list[int]) -> list[Term]:
        """A variable that is not above the start of any of the tasks."""
        if not tasks:
            return []
        low = min(self.earliest[task] for task in tasks)
        high = min(self.latest[task] for task in tasks)
        first = self.integer(f"first{len(self.firsts)}", low, max(low, high))
        self.firsts.append((first, tasks))
        for task in tasks:
            terms, constant = self.start_of(task)
            self.require([*terms, (-1, first)], -constant)
        return [(1, first)]

    def common_values(self, start: Ints, value: int) -> dict[pulp.LpVariable, int]:
        """The objective's value, and the first starts."""
        found = {first: int(start[tasks].min()) for first, tasks in self.firsts}
        return found | {self.goal: value}
