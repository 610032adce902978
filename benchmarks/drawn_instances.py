"""Drawn instances beside the model that a user would write in an hour.

    python -m benchmarks.drawn_instances [--seed 1] [--each 6] [--time-limit 8] [--threads 2]

The plain model is CP-SAT with an interval for each task, no overlap on a resource, and for each
memory a cumulative over what each activation is held; nothing else. Instances are drawn by kind.
For each: what ``solve`` finds and proves, and what the plain model finds and claims, in the same
time. Exit status 1 where ``solve`` has no schedule as short.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np
import typer
from ortools.sat.python import cp_model

from benchmarks.baselines import precedences
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline


def chunks(random: Random) -> Pipeline:
    """Several chunks a rank, alike, with a cap or none."""
    p, v = random.randint(2, 6), random.randint(2, 3)
    return Pipeline(
        num_ranks=p,
        num_microbatches=random.randint(3, 14),
        num_chunks=v,
        forward=random.randint(1, 6),
        backward=random.randint(2, 12),
        latency=random.choice([0, 0, 1, 2]),
        capacity=random.choice([None, p * v // 2 + 1, p + v, 2 * p + 1]),
    )


def uneven_chunks(random: Random) -> Pipeline:
    """Two chunks a rank with times of their own, under a cap."""
    p = random.randint(2, 5)
    return Pipeline(
        num_ranks=p,
        num_microbatches=random.randint(3, 12),
        num_chunks=2,
        forward=tuple(random.randint(2, 6) for _ in range(2 * p)),
        backward=tuple(random.randint(3, 12) for _ in range(2 * p)),
        latency=random.choice([0, 1]),
        capacity=random.choice([p + 2, 2 * p + 1, p + 1]),
    )


def split(random: Random) -> Pipeline:
    """Split backwards under a cap."""
    p = random.randint(2, 6)
    return Pipeline(
        num_ranks=p,
        num_microbatches=random.randint(3, 16),
        split_backward=True,
        forward=random.randint(2, 6),
        input_backward=random.randint(2, 6),
        weight_backward=random.randint(2, 6),
        latency=random.choice([0, 1]),
        capacity=random.randint(2, p + 1),
    )


def uneven(random: Random) -> Pipeline:
    """Stages with times of their own, links and a cap."""
    p = random.randint(3, 7)
    return Pipeline(
        num_ranks=p,
        num_microbatches=random.randint(5, 20),
        forward=tuple(random.randint(2, 9) for _ in range(p)),
        backward=tuple(random.randint(3, 18) for _ in range(p)),
        latency=random.randint(0, 5),
        capacity=random.randint(2, p),
    )


def wave(random: Random) -> Pipeline:
    """V-shaped placement under a cap."""
    p = random.randint(2, 6)
    return Pipeline(
        num_ranks=p,
        num_microbatches=random.randint(3, 12),
        num_chunks=2,
        placement="wave",
        split_backward=random.random() < 1 / 2,
        capacity=random.choice([p + 1, 2 * p, p + 2]),
    )


KINDS: dict[str, Callable[[Random], Pipeline]] = {
    each.__name__: each for each in (chunks, uneven_chunks, split, uneven, wave)
}


class Found(NamedTuple):
    """The makespan found (ticks; None for no schedule), the bound, whether they meet, seconds."""

    value: int | None
    bound: int
    is_optimal: bool
    seconds: float


def plain(problem: Problem, limit: float, threads: int) -> Found:
    """What the plain model finds, and what CP-SAT claims of it."""
    model, duration = cp_model.CpModel(), problem.duration.tolist()
    horizon = int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())
    start = [model.new_int_var(0, horizon, "") for _ in duration]
    interval = [
        model.new_fixed_size_interval_var(begin, ticks, "")
        for begin, ticks in zip(start, duration, strict=True)
    ]
    for before, after, lag in precedences(problem):
        model.add(start[after] >= start[before] + duration[before] + lag)
    for resource in range(len(problem.resources)):
        tasks = problem.occupancy.task[problem.occupancy.resource == resource].tolist()
        model.add_no_overlap([interval[task] for task in tasks])
    _hold(model, problem, start, horizon)
    goal = model.new_int_var(0, horizon, "")
    for task in np.flatnonzero(problem.rank_of_task != NONE).tolist():
        model.add(goal >= start[task] + duration[task])
    model.minimize(goal)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = threads
    status, bound = solver.solve(model), round(solver.best_objective_bound)
    is_found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    value = round(solver.objective_value) if is_found else None
    return Found(value, bound, status == cp_model.OPTIMAL, solver.wall_time)


def _hold(
    model: cp_model.CpModel, problem: Problem, start: list[cp_model.IntVar], horizon: int
) -> None:
    """Each memory: what a sample's forward acquires, until each of its releases."""
    events, actions = problem.events, problem.actions
    sample = np.stack([actions.stage, actions.microbatch, actions.slice], axis=1)[events.task]
    moment = [
        start[task] + (int(problem.duration[task]) if at_end else 0)
        for task, at_end in zip(events.task.tolist(), events.at_end.tolist(), strict=True)
    ]
    for number, store in enumerate(problem.stores):
        if store.capacity is None:
            continue
        begun, held, units = {}, [], []
        rows = [row for row in np.flatnonzero(events.store == number) if events.delta[row]]
        for row in sorted(rows, key=lambda row: -events.delta[row]):
            of, delta = tuple(sample[row].tolist()), int(events.delta[row])
            if delta > 0:
                begun[of] = moment[row]
                continue
            size = model.new_int_var(0, horizon, "")
            held.append(model.new_interval_var(begun[of], size, moment[row], ""))
            units.append(-delta)
        model.add_cumulative(held, units, store.capacity - store.base)


def ours(problem: Problem, limit: float, threads: int) -> Found:
    """What ``solve`` finds and proves."""
    began = time.perf_counter()
    result = solve(problem, SolveOptions(time_limit=limit, threads=threads))
    is_optimal = result.status is Status.OPTIMAL
    return Found(result.value, result.lower_bound, is_optimal, time.perf_counter() - began)


def is_behind(found: Found, beside: Found) -> bool:
    """Whether there is a shorter schedule beside it."""
    return beside.value is not None and (found.value is None or beside.value < found.value)


def main(seed: int = 1, each: int = 6, time_limit: float = 8.0, threads: int = 2) -> None:
    """Draw, solve twice, and print a line an instance and one a kind."""
    tally: dict[str, list[tuple[Found, Found]]] = defaultdict(list)
    for kind, draw in KINDS.items():
        random = Random(f"{kind} {seed}")
        for _ in range(each):
            pipeline = draw(random)
            problem = pipeline.problem()
            found, beside = (way(problem, time_limit, threads) for way in (ours, plain))
            tally[kind].append((found, beside))
            mark = "   behind" if is_behind(found, beside) else ""
            size = f"p={pipeline.num_ranks} m={pipeline.num_microbatches}"
            typer.echo(f"{kind} {size}: {_told(found)}; plain {_told(beside)}{mark}")
    for kind, pairs in tally.items():
        behind = sum(is_behind(found, beside) for found, beside in pairs)
        shorter = sum(is_behind(beside, found) for found, beside in pairs)
        closed = [sum(one.is_optimal for one in column) for column in zip(*pairs, strict=True)]
        typer.echo(
            f"{kind}: {len(pairs)} instances, shorter on {shorter}, behind on {behind}; "
            f"optimal {closed[0]}, plain {closed[1]}"
        )
    if any(is_behind(*pair) for pairs in tally.values() for pair in pairs):
        raise typer.Exit(1)


def _told(found: Found) -> str:
    is_open = "" if found.is_optimal else f" (not below {found.bound})"
    return f"{found.value}{is_open} in {found.seconds:.1f} s"


if __name__ == "__main__":
    typer.run(main)
