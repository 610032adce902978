"""The CP-SAT engine (OR-tools): exact, with one method per constraint family.

Variables: the start of each task, within the window that its head, its tail and the limit leave.
Memory edges say memory exactly where they can. Else activations that are released in parts become
clauses over booleans "x has ended by the start of y", lifetimes a cumulative, and anything else a
reservoir (``solvers.memory_rules``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.engine import Budget, EngineOutcome, Model
from bubbleproof.solvers.memory_rules import LimitedStore
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem


class CpSatModel(Model):
    """The scheduling model of an encoding."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__(encoding)
        self.model = cp_model.CpModel()
        self.start = [
            self.model.new_int_var(low, max(low, high), "")
            for low, high in zip(encoding.earliest.tolist(), encoding.latest.tolist(), strict=True)
        ]
        self.interval = [
            self.model.new_fixed_size_interval_var(start, size, "")
            for start, size in zip(self.start, self.duration, strict=True)
        ]
        least = min(encoding.least, encoding.limit)
        self.goal = self.model.new_int_var(least, max(least, encoding.limit), "")
        self._ended: dict[tuple[int, int], cp_model.IntVar] = {}

    def end(self, task: int) -> cp_model.LinearExpr:
        """The end of a task.

        Parameters
        ----------
        task
            Its number.
        """
        return self.start[task] + self.duration[task]

    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag."""
        self.model.add(self.start[after] >= self.end(before) + lag)

    def exclude(self, resource: int) -> None:
        """One task at a time on a resource."""
        tasks = self.encoding.tasks_on(resource).tolist()
        self.model.add_no_overlap([self.interval[task] for task in tasks])

    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""
        self.precede_all(self.encoding.memory_edges)
        rules = self.encoding.memory
        for clause in rules.clauses:
            if len(clause.either) == 1:
                self.model.add(self.start[clause.later] >= self.end(clause.either[0]))
            else:
                self.model.add_bool_or(self.ended(task, clause.later) for task in clause.either)
        for held in rules.held:
            self._add_cumulative(held)
        for store in rules.watched:
            add_reservoir(self.model, self.problem, store, self.start)

    def ended(self, before: int, after: int) -> cp_model.IntVar:
        """A boolean that is true only if ``before`` has ended by the start of ``after``.

        Parameters
        ----------
        before, after
            Numbers of tasks.
        """
        if (before, after) not in self._ended:
            literal = self.model.new_bool_var("")
            late = self.start[after] >= self.end(before)
            self.model.add(late).only_enforce_if(literal)
            self._ended[before, after] = literal
        return self._ended[before, after]

    def _add_cumulative(self, held: LimitedStore) -> None:
        intervals, demands = [], []
        for lifetime in held.lifetimes:
            size = self.model.new_int_var(0, self.encoding.horizon, "")
            end = self.end(lifetime.last)
            intervals.append(self.model.new_interval_var(self.start[lifetime.first], size, end, ""))
            demands.append(lifetime.amount)
        self.model.add_cumulative(intervals, demands, min(held.room, sum(demands)))

    def add_horizon(self) -> None:
        """The objective, last end - first start - work of each span, not above the limit."""
        for tasks, work in self.encoding.spans:
            first = 0 if self.encoding.starts_at_0 else self._first(tasks)
            for task in tasks:
                self.model.add(self.goal >= self.end(task) - first - work)

    def _first(self, tasks: list[int]) -> cp_model.IntVar:
        first = self.model.new_int_var(0, self.encoding.horizon, "first")
        for task in tasks:
            self.model.add(self.start[task] >= first)
        return first

    def hint(self, start: Ints) -> None:
        """Start the search from a known schedule (ticks per task).

        Parameters
        ----------
        start
            One start a task.
        """
        for variable, value in zip(self.start, start.tolist(), strict=True):
            self.model.add_hint(variable, value)


def search(encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
    """The best starts within the limit that CP-SAT finds in the time given.

    Parameters
    ----------
    hint
        Starts in ticks, one a task, to begin from; None for none.
    """
    if encoding.is_hopeless:
        return EngineOutcome(bound=encoding.limit + 1, is_refuted=True)
    model = CpSatModel(encoding)
    model.build()
    model.model.minimize(model.goal)
    if hint is not None:
        model.hint(hint)
    return run(model, budget)


def run(model: CpSatModel, budget: Budget, solver: CpSatSolver | None = None) -> EngineOutcome:
    """Search a model that is complete, objective included; ``solver`` keeps the values found."""
    solver = solver or CpSatSolver()
    solver.solve(model.model, budget)
    if solver.is_refuted:
        return EngineOutcome(bound=model.encoding.limit + 1, is_refuted=True)
    start = solver.values(model.start) if solver.is_found else None
    return EngineOutcome(start=start, bound=solver.bound)


def add_reservoir(
    model: cp_model.CpModel,
    problem: Problem,
    number: int,
    start: Sequence[cp_model.IntVar],
    actives: Sequence[cp_model.LiteralT] | None = None,
) -> None:
    """A store's changes at the starts and ends of tasks; those of one instant are added up.

    ``actives``, a literal for each row of the problem's events, tell which changes happen.

    Parameters
    ----------
    number
        Of the store.
    """
    events, store = problem.events, problem.stores[number]
    rows = np.flatnonzero(events.store == number).tolist()
    delta = events.delta[rows]
    acquired = int(np.maximum(delta, 0).sum())
    room = acquired if store.capacity is None else min(store.capacity - store.base, acquired)
    shift = np.where(events.at_end, problem.duration[events.task], 0)
    model.add_reservoir_constraint_with_active(
        [start[events.task[row]] + int(shift[row]) for row in rows],
        delta.tolist(),
        [1 if actives is None else actives[row] for row in rows],
        -store.base,
        room,
    )
