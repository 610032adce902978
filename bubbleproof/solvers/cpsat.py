"""The CP-SAT engine (OR-tools): exact, with one method per constraint family.

Variables: the start of each task, within the window that its head, its tail and the best known
makespan leave. The list of methods is the model. Where transfers may run before the first or after
the last computation, the makespan bounds no start; then the sum of all durations and lags does
(in a shortest schedule there is no pause in which nothing runs and nothing is under way).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.theory.actions import NONE, Ints
from bubbleproof.theory.problem import Problem

Progress = Callable[[int, int], None]


class CpSatModel:
    """The scheduling model of a problem for makespans up to ``limit`` (ticks; None for any)."""

    def __init__(self, problem: Problem, bounds: Bounds, limit: int | None) -> None:
        self.problem, self.bounds = problem, bounds
        self.model = cp_model.CpModel()
        longest = int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())
        self.limit = longest if limit is None else limit
        only_compute = bool((problem.rank_of_task != NONE).all())
        self.horizon = self.limit if only_compute else longest
        latest = self.horizon - bounds.tails - problem.duration
        self.is_hopeless = bool((latest < bounds.heads).any())
        self.start = [
            self.model.new_int_var(low, max(low, high), "")
            for low, high in zip(bounds.heads.tolist(), latest.tolist(), strict=True)
        ]
        least = min(bounds.best.bound, self.limit)
        self.makespan = self.model.new_int_var(least, self.limit, "")
        self.interval = [
            self.model.new_fixed_size_interval_var(start, size, "")
            for start, size in zip(self.start, problem.duration.tolist(), strict=True)
        ]

    def add_dependencies(self) -> None:
        """start(after) >= end(before) + lag: precedences, index order and memory edges alike."""
        duration, edges = self.problem.duration.tolist(), self.bounds.edges
        for before, after, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        ):
            self.model.add(self.start[after] >= self.start[before] + duration[before] + lag)

    def add_exclusion(self) -> None:
        """Each resource does one task at a time."""
        occupancy = self.problem.occupancy
        for resource in range(len(self.problem.resources)):
            tasks = occupancy.task[occupancy.resource == resource].tolist()
            self.model.add_no_overlap([self.interval[task] for task in tasks])

    def add_memory(self) -> None:
        """Each store stays within 0 and its capacity, unless other constraints say so already.

        A reservoir holds the load's changes at the starts and ends of tasks; CP-SAT adds up those
        of one instant, as the rule "releases first" does.
        """
        order = self.bounds.order
        exact = order.exact_stores if order is not None else frozenset()
        never_negative = {life.store for life in order.lifecycles} if order is not None else set()
        events, duration = self.problem.events, self.problem.duration
        for number, store in enumerate(self.problem.stores):
            if number in exact or (store.capacity is None and number in never_negative):
                continue
            if order is not None and self._add_held_intervals(number):
                continue
            rows = np.flatnonzero(events.store == number).tolist()
            self.model.add_reservoir_constraint(
                [
                    self.start[t] + (int(duration[t]) if events.at_end[row] else 0)
                    for row in rows
                    for t in [int(events.task[row])]
                ],
                [int(events.delta[row]) for row in rows],
                -store.base,
                self._room(number),
            )

    def _room(self, store: int) -> int:
        """Capacity less base, or all that is ever acquired where that is less."""
        room, events = self.problem.stores[store], self.problem.events
        acquired = int(np.maximum(events.delta[events.store == store], 0).sum())
        return acquired if room.capacity is None else min(room.capacity - room.base, acquired)

    def _add_held_intervals(self, store: int) -> bool:
        """The store as a cumulative over "acquired until released", where all uses are simple."""
        order = self.bounds.order
        assert order is not None
        lives = [life for life in order.lifecycles if life.store == store]
        rows = int((self.problem.events.store == store).sum())
        if not all(life.is_simple for life in lives):
            return False
        if 2 * order.num_microbatches * len(lives) != rows:
            return False
        intervals, demands = [], []
        for life in lives:
            for first, last in zip(
                order.members[life.first].tolist(), order.members[life.last].tolist(), strict=True
            ):
                end = self.start[last] + int(self.problem.duration[last])
                size = self.model.new_int_var(0, self.horizon, "")
                intervals.append(self.model.new_interval_var(self.start[first], size, end, ""))
                demands.append(life.acquired)
        self.model.add_cumulative(intervals, demands, self._room(store))
        return True

    def add_horizon(self) -> None:
        """makespan >= end of any computation - start of any other; transfers do not count."""
        compute = self.problem.rank_of_task != NONE
        first: cp_model.LinearExprT = 0
        if not compute.all():
            first = self.model.new_int_var(0, self.horizon, "first")
            for task in np.flatnonzero(compute).tolist():
                self.model.add(self.start[task] >= first)
        duration = self.problem.duration.tolist()
        for task in np.flatnonzero(compute).tolist():
            self.model.add(self.makespan >= self.start[task] + duration[task] - first)

    def hint(self, start: Ints) -> None:
        """Start the search from a known schedule (ticks per task)."""
        for variable, value in zip(self.start, start.tolist(), strict=True):
            self.model.add_hint(variable, value)


class _Reporter(cp_model.CpSolverSolutionCallback):
    def __init__(self, report: Progress) -> None:
        super().__init__()
        self.report = report

    def on_solution_callback(self) -> None:
        self.report(round(self.objective_value), _rounded_up(self.best_objective_bound))


def _rounded_up(bound: float) -> int:
    return int(np.ceil(bound - 1e-6))


def minimise_makespan(
    problem: Problem,
    bounds: Bounds,
    *,
    limit: int | None,
    hint: Ints | None,
    time_limit: float,
    seed: int,
    threads: int,
    progress: Progress | None,
) -> tuple[Ints | None, int | None, bool]:
    """(starts per task or None, the engine's lower bound or None, whether it claims infeasibility).

    ``limit`` (ticks) is the largest makespan of interest; "infeasible" is relative to it.
    """
    model = CpSatModel(problem, bounds, limit)
    if model.is_hopeless:
        return None, model.limit + 1, True
    model.add_dependencies()
    model.add_exclusion()
    model.add_memory()
    model.add_horizon()
    model.model.minimize(model.makespan)
    if hint is not None:
        model.hint(hint)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.num_workers = threads
    solver.parameters.random_seed = seed
    callback = _Reporter(progress) if progress is not None else None
    status = solver.solve(model.model, callback)
    if status == cp_model.INFEASIBLE:
        return None, model.limit + 1, True
    assert status != cp_model.MODEL_INVALID, model.model.validate()
    bound = _rounded_up(solver.best_objective_bound)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound, False
    return np.array([solver.value(s) for s in model.start], dtype=np.int64), bound, False
