"""What the next task of a rank waits for at a tick: computation elsewhere, or a link.

The chain of last inputs is followed back over what is no computation (messages, transfers, copies):
to the computation that is not done yet, or to what is under way.
"""

from __future__ import annotations

from typing import NamedTuple

from bubbleproof.theory.idle.idle_causes import IdleCause
from bubbleproof.theory.idle.timed_rows import TimedRows
from bubbleproof.theory.model.actions import NONE


class InputWait(NamedTuple):
    """A cause that holds until a tick (exclusive), and whom it names; see ``IdleStretches``."""

    cause: IdleCause
    until: int
    of_action: int
    of_rank: int
    place: int = NONE
    source: int = NONE


def waits_for(rows: TimedRows, task: int, tick: int) -> InputWait:
    """What the last input of a task, which has not arrived by ``tick``, stands at.

    ``of_rank`` is where it comes from.

    Parameters
    ----------
    task
        The index of the task that waits.
    tick
        The instant at which its rank stands idle for want of the input.
    """
    edges, ranks = rows.problem.edges, rows.problem.rank_of_task
    place, waiting, limit, seen = NONE, task, int(rows.ready[task]), set[int]()
    while True:
        giver = int(edges.before[rows.binding[waiting]])
        begins, ends = int(rows.start[giver]), int(rows.end[giver])
        if ends <= tick:
            return _on_its_way(rows, giver, limit, place)
        if ranks[giver] != NONE:
            source = int(ranks[giver])
            return InputWait(IdleCause.INPUT, min(limit, ends), giver, source, place, source)
        if begins <= tick:
            return _on_its_way(rows, giver, min(limit, ends), rows.homes[giver][0])
        limit = min(limit, begins)
        if rows.ready[giver] <= tick or giver in seen:  # a circle of precedences leads nowhere
            return _on_its_way(rows, giver, limit, rows.homes[giver][0])
        limit = min(limit, int(rows.ready[giver]))
        place = rows.homes[giver][0] if place == NONE else place
        seen.add(giver)
        waiting = giver


def _on_its_way(rows: TimedRows, giver: int, until: int, place: int) -> InputWait:
    """The link that the giver is on, or that its message crosses."""
    source = int(rows.problem.rank_of_task[giver])
    if place == NONE and source == NONE:
        place = rows.homes[giver][0]
    return InputWait(IdleCause.LINK, until, giver, sender(rows, giver), place, source)


def sender(rows: TimedRows, task: int) -> int:
    """The rank that something comes from: its own, or that of its last input's, back to one.

    Parameters
    ----------
    task
        The index of the task that gives the input.

    Returns
    -------
    int
        The rank, or ``NONE`` where no computation lies behind it.
    """
    ranks, seen = rows.problem.rank_of_task, set()
    while ranks[task] == NONE and rows.binding[task] != NONE and task not in seen:
        seen.add(task)
        task = int(rows.problem.edges.before[rows.binding[task]])
    return int(ranks[task])
