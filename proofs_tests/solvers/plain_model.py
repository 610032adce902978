"""A plain CP-SAT model: no symmetry, no windows, no bounds: the truth for small problems.

Only what the problem says enters: precedences, one task at a time per resource (links and copy
engines too), loads after all changes of an instant. It shares nothing with ``solvers`` and
``verify``.

Interchangeable microbatches may be renamed, so of such ones the forwards of *one* stage may be
asked to start in the order of their numbers: that is all that ``alike`` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ortools.sat.python import cp_model

from bubbleproof.theory.model.problem import Problem


def optimum(
    problem: Problem,
    objective: str,
    seconds: float = 20.0,
    *,
    below: int | None = None,
    alike: Sequence[Sequence[int]] = (),
) -> int | None:
    """The least makespan or span_idle in ticks, None where no schedule exists (``below`` that).

    ``alike`` are sets of tasks, each the forwards of one stage of interchangeable microbatches.
    Preconditions: releases never fall below 0; makespan where some task runs on no rank.
    """
    if any(store.capacity is not None and store.base > store.capacity for store in problem.stores):
        return None
    model = cp_model.CpModel()
    ticks = [int(d) for d in problem.duration]
    horizon = sum(ticks) + sum(max(0, int(lag)) for lag in problem.edges.lag)
    start = [model.new_int_var(0, horizon, "") for _ in ticks]
    _add_precedences(model, problem, start, ticks)
    for one, other in (pair for tasks in alike for pair in pairwise(tasks)):
        model.add(start[one] <= start[other])
    spans = _add_resources(model, problem, start, ticks, horizon)
    _add_memory(model, problem, start, ticks)
    value = model.new_int_var(-horizon, horizon, "")
    if objective == "makespan":
        for first, _, _ in spans:
            for _, last, _ in spans:
                model.add(value >= last - first)
    else:
        for first, last, work in spans:
            model.add(value >= last - first - work)
    if below is not None:
        model.add(value < below)
    model.minimize(value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL, "the instance is too large for the plain model"
    return int(solver.value(value))


def _add_precedences(
    model: cp_model.CpModel, problem: Problem, start: list[cp_model.IntVar], ticks: list[int]
) -> None:
    for before, after, lag in zip(
        problem.edges.before.tolist(),
        problem.edges.after.tolist(),
        problem.edges.lag.tolist(),
        strict=True,
    ):
        model.add(start[after] >= start[before] + ticks[before] + lag)


def _add_resources(
    model: cp_model.CpModel,
    problem: Problem,
    start: list[cp_model.IntVar],
    ticks: list[int],
    horizon: int,
) -> list[tuple[cp_model.IntVar, cp_model.IntVar, int]]:
    """One task at a time on each; of each rank the first start, the last end and the work."""
    spans = []
    for number, home in enumerate(problem.resources):
        here = problem.occupancy.task[problem.occupancy.resource == number].tolist()
        model.add_no_overlap(
            [model.new_fixed_size_interval_var(start[t], ticks[t], "") for t in here]
        )
        if home.rank is None:
            continue
        first, last = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
        for task in here:
            model.add(first <= start[task])
            model.add(last >= start[task] + ticks[task])
        spans.append((first, last, sum(ticks[t] for t in here)))
    return spans


def _add_memory(
    model: cp_model.CpModel, problem: Problem, start: list[cp_model.IntVar], ticks: list[int]
) -> None:
    lowest = -int(abs(problem.events.delta).sum())
    for number, store in enumerate(problem.stores):
        rows = [row for row, s in enumerate(problem.events.store.tolist()) if s == number]
        if store.capacity is not None:
            model.add_reservoir_constraint(
                [
                    start[t] + (ticks[t] if problem.events.at_end[row] else 0)
                    for row in rows
                    for t in [int(problem.events.task[row])]
                ],
                [int(problem.events.delta[row]) for row in rows],
                lowest,
                store.capacity - store.base,
            )
