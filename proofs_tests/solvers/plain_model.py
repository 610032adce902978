"""A plain CP-SAT model: no symmetry, no windows, no bounds: the truth for small problems.

Only what the problem says enters: precedences, one task at a time per resource, loads after all
changes of an instant. It shares nothing with ``solvers`` and ``verify``.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from bubbleproof.theory.model.problem import Problem


def optimum(problem: Problem, objective: str, seconds: float = 20.0) -> int | None:
    """The least makespan or span_idle in ticks, None where no schedule exists.

    Preconditions: every task runs on one rank; releases never fall below 0.
    """
    if any(store.capacity is not None and store.base > store.capacity for store in problem.stores):
        return None
    model = cp_model.CpModel()
    ticks = [int(d) for d in problem.duration]
    horizon = sum(ticks) + sum(max(0, int(lag)) for lag in problem.edges.lag)
    start = [model.new_int_var(0, horizon, "") for _ in ticks]
    for before, after, lag in zip(
        problem.edges.before.tolist(), problem.edges.after.tolist(), problem.edges.lag.tolist(),
        strict=True,
    ):  # fmt: skip
        model.add(start[after] >= start[before] + ticks[before] + lag)
    homes = problem.rank_of_task.tolist()
    spans = []
    for rank in range(problem.num_ranks):
        here = [t for t, home in enumerate(homes) if home == rank]
        model.add_no_overlap(
            [model.new_fixed_size_interval_var(start[t], ticks[t], "") for t in here]
        )
        first, last = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
        for task in here:
            model.add(first <= start[task])
            model.add(last >= start[task] + ticks[task])
        spans.append((first, last, sum(ticks[t] for t in here)))
    _add_memory(model, problem, start, ticks)
    value = model.new_int_var(-horizon, horizon, "")
    if objective == "makespan":
        for first, _, _ in spans:
            for _, last, _ in spans:
                model.add(value >= last - first)
    else:
        for first, last, work in spans:
            model.add(value >= last - first - work)
    model.minimize(value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL, "the instance is too large for the plain model"
    return int(solver.value(value))


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
