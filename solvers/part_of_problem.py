"""A problem with some of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import Bools
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem


def part_of(problem: Problem, tasks: Bools, edges: Bools, events: Bools) -> Problem:
    """The problem's chosen rows; tasks are renumbered, resources and stores stay as they are.

    Parameters
    ----------
    tasks, edges, events
        One flag per row of the problem's tasks, precedences and memory events. What a task that
        goes had a part in goes with it.
    """
    number = np.cumsum(tasks) - 1
    occupancy, arcs, changes = problem.occupancy, problem.edges, problem.events
    held = tasks[occupancy.task]
    return replace(
        problem,
        actions=problem.actions.take(tasks),
        duration=problem.duration[tasks],
        occupancy=Occupancy(task=number[occupancy.task[held]], resource=occupancy.resource[held]),
        edges=Edges(
            before=number[arcs.before[edges]], after=number[arcs.after[edges]], lag=arcs.lag[edges]
        ),
        events=MemoryEvents(
            task=number[changes.task[events]],
            at_end=changes.at_end[events],
            store=changes.store[events],
            delta=changes.delta[events],
        ),
    )
