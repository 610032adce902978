"""Extension: a problem with more tasks, which is how recomputation, off-load and sharding are said.

The problem's own tasks, resources and stores keep their numbers; new ones follow. Resources that
are added come after the ranks, as ``Problem`` wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)

Home = tuple[Ints, Ints]  # (task, resource) columns
StretchedWait = tuple[Ints, Ints]  # (before, after) columns
StretchedChange = tuple[Ints, bool, Ints, Ints | int]  # (task, at the end?, store, delta)


def extended(
    problem: Problem,
    *,
    actions: ActionTable,
    duration: Ints,
    homes: Sequence[Home],
    waits: Sequence[StretchedWait] = (),
    changes: Sequence[StretchedChange] = (),
    resources: Sequence[Resource] = (),
    stores: Sequence[Store] = (),
) -> Problem:
    """The problem with tasks ``num_tasks``, ``num_tasks + 1``, ... for the rows of ``actions``.

    ``homes`` are the resources of the new tasks, ``waits`` precedences without lag and ``changes``
    memory events; all name tasks by number, old and new alike. Changes of 0 are left out.

    Parameters
    ----------
    duration
        Ticks of each row of ``actions``.
    homes
        The resources of the new tasks, as (tasks, resources).
    waits
        Precedences without lag.
    changes
        Memory events; those of 0 units are left out.
    resources, stores
        What comes after those of the problem.
    """
    task, resource = (np.concatenate([home[i] for home in homes]) for i in range(2))
    order = np.argsort(task, kind="stable")
    return replace(
        problem,
        resources=(*problem.resources, *resources),
        stores=(*problem.stores, *stores),
        actions=ActionTable.concatenate([problem.actions, actions]),
        duration=np.concatenate([problem.duration, duration]),
        occupancy=Occupancy(
            task=np.concatenate([problem.occupancy.task, task[order]]),
            resource=np.concatenate([problem.occupancy.resource, resource[order]]),
        ),
        edges=more_edges(problem.edges, waits),
        events=more_events(problem.events, changes),
    )


def renumbered(
    problem: Problem, kept: Bools, number: Ints, actions: ActionTable, duration: Ints
) -> Problem:
    """The tasks that are ``kept``, where task t is now called ``number[t]``.

    ``actions`` and ``duration`` are of all tasks, by their old numbers. A task that is not kept
    leaves its edges and events to the one whose number it has; where that is ``NONE`` its edges go
    with it. Precondition: it has no events then.

    Parameters
    ----------
    kept
        One flag per task.
    number
        The new number of each task, or ``NONE``.
    actions, duration
        Action and ticks of every task, by its old number.
    """
    homes, events = problem.occupancy, problem.events
    rows = kept[homes.task]
    before, after = number[problem.edges.before], number[problem.edges.after]
    stays = (before != NONE) & (after != NONE)
    return replace(
        problem,
        actions=actions.take(kept),
        duration=duration[kept],
        occupancy=Occupancy(task=number[homes.task[rows]], resource=homes.resource[rows]),
        edges=Edges(before=before[stays], after=after[stays], lag=problem.edges.lag[stays]),
        events=replace(events, task=number[events.task]),
    )


def numbered(present: Sequence[Resource | Store], names: Sequence[str]) -> tuple[Ints, list[str]]:
    """The number of each name, and the names that are new: they follow those that are present.

    Parameters
    ----------
    names
        Names of resources or stores, each any number of times.

    Returns
    -------
    tuple[Ints, list[str]]
        A number per name, and the names that are new in the order of their numbers.
    """
    known = {one.name: number for number, one in enumerate(present)}
    new = [name for name in dict.fromkeys(names) if name not in known]
    known.update({name: len(present) + number for number, name in enumerate(new)})
    return np.array([known[name] for name in names], dtype=np.int64), new


def host_memory(rank: int) -> str:
    """The name of the store of a rank's host.

    Parameters
    ----------
    rank
        A rank of the problem, from 0 on.
    """
    return f"host memory of rank {rank}"


def with_changes(problem: Problem, changes: Sequence[StretchedChange]) -> Problem:
    """The problem with more memory events; changes of 0 are left out."""
    return replace(problem, events=more_events(problem.events, changes))


def subset(events: MemoryEvents, kept: Bools) -> MemoryEvents:
    """The events that are kept.

    Parameters
    ----------
    kept
        One flag per event.
    """
    return MemoryEvents(**{name: getattr(events, name)[kept] for name in events.__slots__})


def more_edges(edges: Edges, waits: Sequence[StretchedWait], lag: Ints | int = 0) -> Edges:
    """The edges and, after them, the waits, with one lag or one each, in ticks.

    Parameters
    ----------
    lag
        Ticks of every wait, or of each, in the order in which they stand; they may be negative.
    """
    before, after = (
        np.concatenate([own, *(wait[side] for wait in waits)])
        for side, own in enumerate((edges.before, edges.after))
    )
    lags = np.broadcast_to(lag, len(before) - len(edges))
    return Edges(before=before, after=after, lag=np.concatenate([edges.lag, lags]))


def more_events(events: MemoryEvents, changes: Sequence[StretchedChange]) -> MemoryEvents:
    """The memory events and, after them, the changes; those of 0 are left out."""
    delta = np.concatenate(
        [events.delta, *(np.broadcast_to(change[3], len(change[0])) for change in changes)]
    )
    at_end: Bools = np.concatenate(
        [events.at_end, *(np.full(len(change[0]), change[1]) for change in changes)]
    )
    kept = delta != 0
    return MemoryEvents(
        task=np.concatenate([events.task, *(change[0] for change in changes)])[kept],
        at_end=at_end[kept],
        store=np.concatenate([events.store, *(change[2] for change in changes)])[kept],
        delta=delta[kept],
    )


def backwards_of(problem: Problem, forwards: Ints) -> Ints:
    """The B or I of the stage, microbatch and slice of each forward task. Shape: (forwards,).

    Parameters
    ----------
    forwards
        Indices of tasks of kind F.

    Raises
    ------
    ValueError
        Where there is none (the backward is part of an overlapped pair).
    """
    actions = problem.actions
    names = actions.stage[forwards], actions.microbatch[forwards], actions.slice[forwards]
    full, part = (problem.locate(ActionTable.of(int(kind), *names)) for kind in (Kind.B, Kind.I))
    found = np.where(full == NONE, part, full)
    if (found == NONE).any():
        lone = int(forwards[int(np.argmax(found == NONE))])
        raise ValueError(f"{problem.label(lone)} has no backward of its own")
    return found


def tasks_of_stage(problem: Problem, stage: int, *kinds: Kind) -> Ints:
    """The tasks of a stage with one of the kinds, by microbatch and slice.

    Parameters
    ----------
    stage
        The stage's number.
    *kinds
        One kind of action or more.

    Returns
    -------
    Ints
        Indices of tasks, ascending by microbatch, then slice, then part.

    Raises
    ------
    ValueError
        Where there is none.
    """
    actions = problem.actions
    tasks = np.flatnonzero((actions.stage == stage) & actions.is_kind(*kinds))
    if not len(tasks):
        names = " or ".join(kind.name for kind in kinds)
        raise ValueError(f"stage {stage} has no {names} of its own in the problem")
    order: Ints = np.lexsort((actions.part[tasks], actions.slice[tasks], actions.microbatch[tasks]))
    return tasks[order]
