"""A plain z3 encoding, as schedule search papers use it (Tessel's): what the modelling is worth.

Integer starts, precedences, a disjunction for every pair of tasks of a resource, and for every
acquisition the sum of all changes that happen by then. No symmetry, no windows, no bound, no
schedule to begin from; ``z3.Optimize`` minimises. It shares nothing with ``bubbleproof.solvers``.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem


def plain_z3(problem: Problem, objective: str, seconds: float) -> tuple[Ints | None, int]:
    """Starts per task (ticks), if any were found, and the lower bound claimed."""
    optimize = z3.Optimize()
    optimize.set(timeout=max(1, int(1000 * seconds)), ctrl_c=False)  # Ctrl-C stays Python's
    start = [z3.Int(f"s{task}") for task in range(problem.num_tasks)]
    end = [begin + int(ticks) for begin, ticks in zip(start, problem.duration, strict=True)]
    optimize.add([begin >= 0 for begin in start])
    edges = problem.edges
    for before, after, lag in zip(edges.before, edges.after, edges.lag, strict=True):
        optimize.add(start[after] >= end[before] + int(lag))
    for resource in range(len(problem.resources)):
        tasks = problem.occupancy.task[problem.occupancy.resource == resource]
        for a, b in combinations(tasks.tolist(), 2):
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
