"""Predicted live bytes: those that the memory model puts on each rank as each action runs.

The events are theory's (``prediction``); here they happen in the order of a rank's own program, not
at times, so what is predicted of an action depends on nothing that ran. What runs beside
computation stands twice in a program: its first row is its start, its second its end. (RESHARD,
which takes no time, stands once.) A computation that makes room for a gradient before it runs has
one more prediction: the bytes when it has made it. So has an overlapped pair, whose forward comes
before, and one more where that is recomputed: what it drops goes as the pair ends.
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

BESIDE = (*TRANSFER_KINDS, *HOST_KINDS, *COLLECTIVE_KINDS)
UNCOUNTED = (*COMMUNICATION_KINDS, *TRAINING_KINDS)  # what changes no activation
LiveBytes = tuple[tuple[tuple[int, ...], ...], ...]


def predicted_live_bytes(
    sized: Problem, orders: Sequence[Sequence[Action]], rooms: Mapping[Action, int]
) -> LiveBytes:
    """The bytes of each action of each rank: as it runs, and after it.

    ``sized`` is the problem with its memory in bytes (``Replicated.sized``), ``rooms`` the
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
        level, begun, held = sized.stores[rank].base, set[Action](), []
        for action, task in zip(order, tasks, strict=True):
            if task < 0 and action.kind not in UNCOUNTED:
                return ()
            is_second = action in begun
            begun.add(action)
            starts, ends = changes.get(task, (0, 0))
            if action.kind in BESIDE and action.kind is not Kind.RESHARD:
                starts, ends = (ends if is_second else starts), 0
            after = level + starts + ends
            running = _running(action, level, starts, rooms.get(action, 0))
            if action.partner is not None and (again := recomputed.get(key_of(action))):
                running = (*running, after + changes[again][0])  # the forward drops last
            held.append((*running, after))
            level = after
        found.append(tuple(held))
    return tuple(found)


def _running(action: Action, level: int, starts: int, room: int) -> tuple[int, ...]:
    """The bytes as an action runs, at each sample of then."""
    if not room:
        return (level + starts,)
    if action.partner is None:
        return (level + room,)
    return (level + starts - room, level + starts)


def _changes(problem: Problem, rank: int) -> dict[int, tuple[int, int]]:
    """By task: what it adds to the rank's memory at its start, and at its end."""
    events = problem.events
    found: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    here = events.store == rank
    rows = zip(
        events.task[here].tolist(),
        events.at_end[here].tolist(),
        events.delta[here].tolist(),
        strict=True,
    )
    for task, at_end, delta in rows:
        found[task][int(at_end)] += delta
    return {task: (starts, ends) for task, (starts, ends) in found.items()}
