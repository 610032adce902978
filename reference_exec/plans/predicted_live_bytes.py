"""Predicted live bytes: those that the memory model puts on each rank at each of its samples.

The events are theory's (``prediction``); here they happen in the order of a rank's own program, not
at times, so what is predicted of an action depends on nothing that ran. What runs beside
computation stands twice in a program: its first row is its start, its second its end. (RESHARD,
which takes no time, stands once.)

As many bytes are predicted of an action as a rank has to sample, so that one that is left out is
seen: those after it, and before these

    a forward that is recomputed     what it holds before it drops all but its input
    room for a gradient              as it is made, before the computation
    an overlapped pair               what its forward leaves; what that drops goes as the pair ends

A training's own STEPs and exchanges, which are no tasks, change nothing. SEND and RECV are not
sampled. What a rank's host holds changes with what runs beside computation alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from bubbleproof.reference_exec.plans.replay_plan import (
    COLLECTIVE_KINDS,
    HOST_KINDS,
    TRAINING_KINDS,
    TRANSFER_KINDS,
    key_of,
)
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action, ActionTable, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.extension import host_memory

BESIDE = (*TRANSFER_KINDS, *HOST_KINDS, *COLLECTIVE_KINDS)
UNCOUNTED = (*COMMUNICATION_KINDS, *TRAINING_KINDS)  # what changes no activation
LiveBytes = tuple[tuple[tuple[int, ...], ...], ...]


def predicted_live_bytes(
    sized: Problem, orders: Sequence[Sequence[Action]], rooms: Mapping[Action, int]
) -> LiveBytes:
    """The bytes at each sample of each action of each rank.

    ``sized`` is the problem with its memory in bytes (``ReplicatedSchedule.sized``), ``rooms`` the
    bytes of gradients that it counts at the start of some actions; what is none of its tasks, in a
    training STEPs and exchanges, changes nothing. Empty where an order has other actions that are
    no task of it.
    """
    found = []
    recomputed = {
        key_of(sized.actions[task]): task
        for task in np.flatnonzero(sized.actions.is_kind(Kind.R)).tolist()
    }
    for rank, order in enumerate(orders):
        changes = _changes(sized, rank)
        tasks = sized.locate(ActionTable.from_actions(order)).tolist()
        level, begun = sized.stores[rank].base, set[Action]()
        held: list[tuple[int, ...]] = []
        for action, task in zip(order, tasks, strict=True):
            if task < 0 and action.kind not in UNCOUNTED:
                return ()
            is_second = action in begun
            begun.add(action)
            starts, ends = changes.get(task, (0, 0))
            if action.kind in BESIDE and action.kind is not Kind.RESHARD:
                starts, ends = (ends if is_second else starts), 0
            after = level + starts + ends
            again = recomputed.get(key_of(action))
            dropped = None if again is None else after + changes[again][0]
            is_sampled = action.kind not in COMMUNICATION_KINDS
            running = _running(action, level, starts, rooms.get(action, 0), dropped)
            held.append((*running, after) if is_sampled else ())
            level = after
        found.append(tuple(held))
    return tuple(found)


def predicted_host_bytes(
    sized: Problem, orders: Sequence[Sequence[Action]]
) -> tuple[tuple[int, ...], ...]:
    """The bytes on each rank's host after each action of the rank; empty where there is no host.

    ``sized`` as above. A rank whose host has no part in the schedule has 0 throughout.
    """
    stores = host_stores(sized)
    return tuple(
        _host_bytes(sized, order, stores.get(k)) for k, order in enumerate(orders) if stores
    )


def host_stores(problem: Problem) -> dict[int, int]:
    """The store of each rank's host, by rank, of those that have one."""
    number = {store.name: k for k, store in enumerate(problem.stores)}
    names = {rank: host_memory(rank) for rank in range(problem.num_ranks)}
    return {rank: number[name] for rank, name in names.items() if name in number}


def _host_bytes(sized: Problem, order: Sequence[Action], store: int | None) -> tuple[int, ...]:
    if store is None:
        return (0,) * len(order)
    changes, level = _changes(sized, store), sized.stores[store].base
    tasks = sized.locate(ActionTable.from_actions(order)).tolist()
    begun, held = set[int](), []
    for task in tasks:
        starts, ends = changes.get(task, (0, 0))
        level += ends if task in begun else starts
        begun.add(task)
        held.append(level)
    return tuple(held)


def _running(
    action: Action, level: int, starts: int, room: int, dropped: int | None
) -> tuple[int, ...]:
    """The bytes at each sample before the last; ``dropped`` where a forward is recomputed.

    Those are what is held before a pair's forward, which comes first, drops all but its input.
    """
    if action.partner is not None:
        pair = (level + starts - room, level + starts) if room else (level + starts,)
        return pair if dropped is None else (*pair, dropped)
    if action.kind is Kind.F and dropped is not None:
        return (level + starts,)
    return (level + room,) if room else ()


def _changes(problem: Problem, store: int) -> dict[int, tuple[int, int]]:
    """By task: what it adds to a store at its start, and at its end."""
    events = problem.events
    found: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    here = events.store == store
    rows = zip(
        events.task[here].tolist(),
        events.at_end[here].tolist(),
        events.delta[here].tolist(),
        strict=True,
    )
    for task, at_end, delta in rows:
        found[task][int(at_end)] += delta
    return {task: (starts, ends) for task, (starts, ends) in found.items()}
