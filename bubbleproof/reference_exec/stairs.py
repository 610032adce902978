"""Predicted stairs: the bytes that the memory model puts on each rank as each action runs.

The events are theory's (``prediction``); here they happen in the order of a rank's own program, not
at times, so what is predicted of an action depends on nothing that ran. What runs beside
computation stands twice in a program: its first row is its start, its second its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bubbleproof.reference_exec.plan import (
    COLLECTIVE_KINDS,
    HOST_KINDS,
    TRAINING_KINDS,
    TRANSFER_KINDS,
)
from bubbleproof.theory.actions import COMMUNICATION_KINDS, Action, ActionTable
from bubbleproof.theory.problem import Problem

BESIDE = (*TRANSFER_KINDS, *HOST_KINDS, *COLLECTIVE_KINDS)
UNCOUNTED = (*COMMUNICATION_KINDS, *TRAINING_KINDS)  # what changes no activation
Stairs = tuple[tuple[tuple[int, int], ...], ...]


def predicted_stairs(sized: Problem, orders: Sequence[Sequence[Action]]) -> Stairs:
    """(bytes as it runs, bytes after it) of each action of each rank.

    ``sized`` is the problem with its memory in bytes (``prediction.with_bytes``); what is none of
    its tasks, in a training STEPs and exchanges, changes nothing. Empty where an
    order has actions that are no task of it, and for collectives, whose bytes are not told by rows.
    """
    if sized.actions.is_kind(*COLLECTIVE_KINDS).any():
        return ()
    found = []
    for rank, order in enumerate(orders):
        changes = _changes(sized, rank)
        tasks = sized.locate(ActionTable.from_actions(order)).tolist()
        level, begun, stairs = sized.stores[rank].base, set[Action](), []
        for action, task in zip(order, tasks, strict=True):
            if task < 0 and action.kind not in UNCOUNTED:
                return ()
            is_second = action in begun
            begun.add(action)
            starts, ends = changes.get(task, (0, 0))
            if action.kind in BESIDE:
                starts, ends = (ends if is_second else starts), 0
            stairs.append((level + starts, level + starts + ends))
            level += starts + ends
        found.append(tuple(stairs))
    return tuple(found)


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
