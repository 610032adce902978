"""The CP-SAT engine (OR-tools): exact, with one method per constraint family.

Variables: the start of each task, within the window that its head, its tail and the best known
makespan leave. The list of methods is the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.theory.actions import NONE, Ints
from bubbleproof.theory.problem import Problem

Progress = Callable[[int, int, float], None]


class CpSatModel:
    """The scheduling model of a problem for starts in 0..``horizon``."""

    def __init__(self, problem: Problem, bounds: Bounds, horizon: int) -> None:
        self.problem, self.bounds, self.horizon = problem, bounds, horizon
        self.model = cp_model.CpModel()
        latest = horizon - bounds.tails - problem.duration
        self.is_hopeless = bool((latest < bounds.heads).any())
        self.start = [
            self.model.new_int_var(low, max(low, high), "")
            for low, high in zip(bounds.heads.tolist(), latest.tolist(), strict=True)
        ]
        self.makespan = self.model.new_int_var(min(bounds.best.bound, horizon), horizon, "")
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
        """Each store stays within its capacity, unless the memory edges say so already.

        A reservoir holds the load's changes at the starts and ends of tasks; CP-SAT adds up those
        of one instant, as the rule "releases first" does.
        """
        order = self.bounds.order
        exact = order.exact_stores if order is not None else frozenset()
        events, duration = self.problem.events, self.problem.duration
        for number, store in enumerate(self.problem.stores):
            if store.capacity is None or number in exact:
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
                store.capacity - store.base,
            )

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
        room = self.problem.stores[store]
        assert room.capacity is not None
        self.model.add_cumulative(intervals, demands, room.capacity - room.base)
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
    def __init__(self, report: Progress, began: float) -> None:
        super().__init__()
        self.report, self.began = report, began

    def on_solution_callback(self) -> None:
        seconds = time.perf_counter() - self.began
        bound = int(np.ceil(self.best_objective_bound))
        self.report(int(self.objective_value), bound, seconds)


def minimise_makespan(
    problem: Problem,
    bounds: Bounds,
    *,
    horizon: int,
    hint: Ints | None,
    time_limit: float,
    seed: int,
    threads: int,
    progress: Progress | None,
) -> tuple[Ints | None, int | None, bool]:
    """(starts per task or None, the engine's lower bound or None, whether it claims infeasibility).

    ``horizon`` (ticks) is the largest makespan of interest; "infeasible" is relative to it.
    """
    model = CpSatModel(problem, bounds, horizon)
    if model.is_hopeless:
        return None, horizon + 1, True
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
    callback = _Reporter(progress, time.perf_counter()) if progress is not None else None
    status = solver.solve(model.model, callback)
    if status == cp_model.INFEASIBLE:
        return None, horizon + 1, True
    assert status != cp_model.MODEL_INVALID, model.model.validate()
    bound = int(np.ceil(solver.best_objective_bound - 1e-6))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound, False
    return np.array([solver.value(s) for s in model.start], dtype=np.int64), bound, False
