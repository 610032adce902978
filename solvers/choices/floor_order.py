"""Orders of computations that are good for the floor (``solvers.choices.variants``).

The best schedule of the floor says in which order to compute if transfers were free, and published
orders often need few of them. With the order kept, what remains to be found is where transfers go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.starts import starts_by_task
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.check import check


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorOrder:
    """An order per rank, as ``tasks`` of the whole problem, and its ``makespan`` on the floor.

    ``excess``: by how many units its peaks exceed the capacities of all ranks if nothing is taken.
    """

    name: str
    makespan: int
    excess: int
    tasks: tuple[tuple[int, ...], ...]


def good_orders(
    variants: Variants, known: Schedule | None, starts: Iterable[tuple[str, Program]]
) -> list[FloorOrder]:
    """The orders of a ``known`` schedule of the floor and of the named programs that fit it.

    The shortest on the floor first, and of equals the one that needs the least help.
    """
    floor = variants.floor
    schedules = [] if known is None else [("the floor's order", known)]
    for name, program in starts:
        try:
            schedules.append((f"{name}'s order", left_shift(floor, program)))
        except UntimedProgram:
            continue
    found = []
    for name, schedule in schedules:
        verdict = check(floor, schedule)
        if verdict.ok and verdict.measured is not None:
            found.append(
                FloorOrder(
                    name=name,
                    makespan=verdict.measured.makespan,
                    excess=_excess(variants.plain, schedule),
                    tasks=_orders(variants, starts_by_task(floor, schedule)),
                )
            )
    return sorted(found, key=lambda order: (order.makespan, order.excess))


def _orders(variants: Variants, start: Ints) -> tuple[tuple[int, ...], ...]:
    """The tasks of each rank by their start in a schedule of the floor (ticks per task)."""
    floor, always = variants.floor, np.flatnonzero(variants.task_option == NONE)
    orders = []
    for rank in range(floor.num_ranks):
        tasks = floor.occupancy.task[floor.occupancy.resource == rank]
        ends = start[tasks] + floor.duration[tasks]
        orders.append(tuple(always[tasks[np.lexsort((ends, start[tasks]))]].tolist()))
    return tuple(orders)


def _excess(problem: Problem, schedule: Schedule) -> int:
    """By how many units the schedule's peaks exceed the capacities, all ranks together."""
    measured = check(problem, schedule).measured
    if measured is None:  # it names other tasks, and is the last to be tried
        return sum(store.capacity or 0 for store in problem.stores)
    return sum(
        max(0, peak - store.capacity)
        for peak, store in zip(measured.peak_memory, problem.stores, strict=False)
        if store.capacity is not None
    )
