"""The reason for a lower bound in words: which resource or store it is of, and what would lower it.

>>> from bubbleproof.theory.pipelines.pipeline import Pipeline
>>> uneven = Pipeline(num_ranks=2, num_microbatches=4, forward=(1, 2), backward=(2, 4)).problem()
>>> print(bound_reason(uneven))
8 tasks on rank 1 take 24 ticks, none starts before 1, and 2 follow the last: no schedule is below \
27. Rank 1 has the most work, 24 of 36 ticks: move a layer off it.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.solvers.bounds import Bounds, lower_bounds, machine_bound
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.units import plural
from bubbleproof.verify.certificates.certificate_rule import without_deadlines
from bubbleproof.verify.certificates.one_machine import OneMachine


def bound_reason(problem: Problem) -> str:
    """Why no schedule is shorter than the best bound that needs no search, and what would help.

    Precondition: the problem has a computation. Ticks are in the problem's unit.
    """
    problem = without_deadlines(problem)
    bounds = lower_bounds(problem)
    if bounds.is_cyclic:
        return "The precedences go round in a circle: there is no schedule."
    least, unit = bounds.best.bound, plural(problem.unit)
    if any(store.capacity is not None for store in problem.stores):
        free = lower_bounds(problem.with_capacity(None)).best.bound
        if free < least:
            return (
                f"No schedule is below {least} {unit} with the room that there is in memory; with "
                f"room for everything that bound is {free}. More room is what would lower it."
            )
    machine = _busiest(problem, bounds)
    if machine is None:
        return (
            f"No schedule is below {least} {unit}: so long takes a chain of tasks that wait for "
            "one another, on several ranks. Quicker tasks or links on it would lower that."
        )
    name, tasks = problem.resources[machine.resource].name, np.array(machine.tasks)
    work = int(problem.duration[tasks].sum())
    before, after = (int(path[tasks].min()) for path in (bounds.heads, bounds.tails))
    why = (
        f"{len(tasks)} tasks on {name} take {work} {unit}, none starts before {before}, and "
        f"{after} follow the last: no schedule is below {least}."
    )
    return f"{why} {_advice(problem, machine.resource, before + after)}"


def _busiest(problem: Problem, bounds: Bounds) -> OneMachine | None:
    """Of the resources that alone give the bound the one with most work, at least a third of it."""
    occupancy, most, found = problem.occupancy, bounds.best.bound / 3, None
    for resource in np.unique(occupancy.resource).tolist():
        users = occupancy.task[occupancy.resource == resource]
        critical = machine_bound(problem, resource, bounds.heads, bounds.tails)
        for tasks in (users, np.array(critical.tasks)):
            work = int(problem.duration[tasks].sum())
            ends = int(bounds.heads[tasks].min()) + int(bounds.tails[tasks].min())
            if work + ends >= bounds.best.bound and work > most:
                found = OneMachine(
                    resource=resource, tasks=tuple(tasks.tolist()), bound=work + ends
                )
                most = work
    return found


def _advice(problem: Problem, resource: int, around: int) -> str:
    """What would lower the bound of a resource, with ``around`` ticks before and after its work."""
    name, unit = problem.resources[resource].name, plural(problem.unit)
    if resource >= problem.num_ranks:
        return f"A faster {name}, or less that goes over it, would lower that."
    columns = problem.occupancy
    of_rank = np.zeros(len(problem.resources), dtype=np.int64)
    np.add.at(of_rank, columns.resource, problem.duration[columns.task])
    ranks = of_rank[: problem.num_ranks]
    if ranks.max() > ranks.min() and of_rank[resource] == ranks.max():
        most = f"{name.capitalize()} has the most work, {ranks[resource]} of {ranks.sum()} {unit}"
        return f"{most}: move a layer off it."
    if around:
        return (
            f"{around} {unit} of that are the way in and out: more microbatches spread them over "
            "more work, fewer or quicker stages make them fewer."
        )
    return f"{name.capitalize()} is never idle then: only quicker computation would lower that."
