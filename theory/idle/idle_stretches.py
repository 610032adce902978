"""A cause for every idle tick of every rank: the definition of docs/guide/design.md §2 at work.

>>> from bubbleproof.theory.families import family
>>> from bubbleproof.theory.pipelines.pipeline import Pipeline
>>> member = family("1f1b")(p=2, m=3)
>>> for stretch in idle_stretches(member.problem, member.schedule):
...     print(stretch.rank, stretch.from_tick, stretch.to_tick, stretch.sentence)
0 2 3 the order's own choice: 0F2 could have run
0 3 4 0B0 waits for 1B0 of rank 1 over link 1>0
0 9 10 0B2 waits for 1B2 of rank 1 over link 1>0
1 0 1 warm-up: no schedule starts sooner here
1 10 12 drain: no schedule runs longer here

Some idle time no schedule avoids: before a rank can start, and after it must have ended.
``warm_ups[r]`` is a bound, for every schedule of the problem, on the first start on rank r less the
first start of all: the least, over the tasks of r, of the longest chain of durations and lags from
the start of a computation to the task's start. ``drains[r]`` bounds the last end of all less the
last end on r, by chains from the task's end to the end of a computation. Both are 0 where a task
has no such chain but itself, and for a rank without tasks. Chains that no computation begins (a
reload before all else) do not count: the first start of all may come after them.

What the next task of a rank waits for at a tick is computation elsewhere, or a link: the chain of
last inputs is followed back over what is no computation (messages, transfers, copies):
to the computation that is not done yet, or to what is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bubbleproof.theory.idle.could_run import Alike, Offer, groups_of
from bubbleproof.theory.idle.idle_causes import CAUSES, IdleCause, IdleStretches
from bubbleproof.theory.idle.room import Room, room_of
from bubbleproof.theory.idle.timed_rows import TimedRows, timed_rows
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import in_order, successors

Row = tuple[int, ...]  # in the order of COLUMNS
COLUMNS = (
    "rank",
    "from_tick",
    "to_tick",
    "cause",
    "action",
    "of_action",
    "of_rank",
    "place",
    "source",
)


def idle_stretches(problem: Problem, schedule: Schedule) -> IdleStretches:
    """The idle time of every rank, cut into stretches with one cause each, by rank and time.

    On every rank their ticks add up to ``idle_ticks`` of ``Measures``. Rows that are no task of the
    problem, or repeat one, do not count. Raises ``ValueError`` where a rank does two things at
    once.
    """
    rows = timed_rows(problem, schedule)
    found: list[Row] = []
    if len(rows.computed):
        room, heads, tails = room_of(rows), warm_ups(problem), drains(problem)
        for rank in range(problem.num_ranks):
            found += _merged(_of_rank(rows, room, rank, heads[rank], tails[rank]))
    columns = np.array(found, dtype=np.int64).reshape(len(found), 9).T
    named = dict(zip(COLUMNS, columns, strict=True))
    return IdleStretches(problem=problem, schedule=schedule, **named)


def _of_rank(rows: TimedRows, room: Room, rank: int, head: int, tail: int) -> Iterator[Row]:
    tasks = rows.tasks_of[rank]
    first, final = rows.first, int(rows.end[rows.last_task])
    if not len(tasks):
        yield _finished(rows, rank, NONE, first, final)
        return
    begin, stop = int(rows.start[tasks[0]]), int(rows.end[tasks[-1]])
    head, tail = min(head, begin - first), min(tail, final - stop)
    yield _row(rank, first, first + head, IdleCause.WARM_UP, int(tasks[0]))
    groups = groups_of(rows, room, rank)
    for place, start in _gaps(rows, tasks, first + head):
        yield from _in_gap(rows, room, rank, place, start, groups)
    yield _finished(rows, rank, int(tasks[-1]), stop, final - tail)
    yield _row(rank, final - tail, final, IdleCause.DRAIN, int(tasks[-1]))


def _gaps(rows: TimedRows, tasks: Ints, origin: int) -> list[tuple[int, int]]:
    """(place of the next task, first tick) of each stretch before a task of a rank."""
    ended = np.concatenate([[origin], rows.end[tasks[:-1]]])
    places = np.flatnonzero(ended < rows.start[tasks])
    return list(zip(places.tolist(), ended[places].tolist(), strict=True))


def _in_gap(
    rows: TimedRows, room: Room, rank: int, place: int, tick: int, groups: list[Alike]
) -> Iterator[Row]:
    """The causes of one stretch, from left to right."""
    offer = Offer(rows=rows, room=room, rank=rank, place=place, groups=groups)
    upcoming = offer.next_task
    while tick < offer.end:
        could = _could_run(offer, tick)
        if could is None:
            wait = _wait(offer, tick)
            until = min(wait.until, offer.next_arrival(tick), offer.end)
            names = (upcoming, wait.of_action, wait.of_rank, wait.place, wait.source)
            yield _row(rank, tick, until, wait.cause, *names)
        else:
            cause, until, *named = could
            yield _row(rank, tick, until, cause, *named)
        tick = until


def _could_run(offer: Offer, tick: int) -> tuple[IdleCause, int, int, int, int, int] | None:
    """What could have run at a tick, given room: cause, until when, and whom it names."""
    rows, upcoming, full = offer.rows, offer.next_task, NONE
    for task in offer.ready_at(tick):
        if offer.room.blocked(task, tick, offer.moved) == NONE:
            until = offer.end if task == upcoming else tick + int(rows.problem.duration[task])
            offer.moved.append((task, tick))
            offer.spent.add(task)
            return IdleCause.ORDER, until, task, upcoming, offer.rank, NONE
        full = task if full == NONE else full
    if full == NONE:
        return None
    ends = offer.end if full == upcoming else tick + int(rows.problem.duration[full])
    has_room, whose = offer.room.until(full, tick, offer.moved)
    if ends <= has_room and full != upcoming:
        offer.spent.add(full)
    store = offer.room.blocked(full, tick, offer.moved)
    of_rank = sender(rows, whose) if whose != NONE else NONE
    return IdleCause.MEMORY, min(ends, has_room), full, whose, of_rank, store


def _wait(offer: Offer, tick: int) -> InputWait:
    """What the next task waits for, an input or another of its resources."""
    rows, task = offer.rows, offer.next_task
    if rows.ready[task] > tick:
        return waits_for(rows, task, tick)
    holder = offer.holder(task, tick)
    shared = [r for r in rows.homes[task] if r != offer.rank and r in rows.homes[holder]]
    until = int(rows.end[holder])
    return InputWait(IdleCause.LINK, until, holder, sender(rows, holder), shared[0])


def _row(
    rank: int,
    start: int,
    end: int,
    cause: IdleCause,
    action: int,
    of_action: int = NONE,
    of_rank: int = NONE,
    place: int = NONE,
    source: int = NONE,
) -> Row:
    return rank, start, end, CAUSES.index(cause), action, of_action, of_rank, place, source


def _finished(rows: TimedRows, rank: int, action: int, start: int, end: int) -> Row:
    last = rows.last_task
    of_rank = int(rows.problem.rank_of_task[last])
    return _row(rank, start, end, IdleCause.FINISHED, action, last, of_rank)


def _merged(found: Iterator[Row]) -> list[Row]:
    """The stretches that take time; neighbours that name the same become one."""
    merged: list[Row] = []
    for row in found:
        if row[2] <= row[1]:
            continue
        if merged and merged[-1][2] == row[1] and merged[-1][3:] == row[3:]:
            merged[-1] = (*merged[-1][:2], row[2], *row[3:])
        else:
            merged.append(row)
    return merged


def warm_ups(problem: Problem) -> list[int]:
    """The idle ticks before its first task that every schedule has, rank by rank."""
    return _least(problem, _chains(problem, problem.edges.before, problem.edges.after))


def drains(problem: Problem) -> list[int]:
    """The idle ticks after its last task that every schedule has, rank by rank."""
    return _least(problem, _chains(problem, problem.edges.after, problem.edges.before))


def _chains(problem: Problem, before: Ints, after: Ints) -> list[int]:
    """The longest chain from the far side of a computation to the near side of each task.

    All 0 where the precedences go round in a circle, as no schedule keeps them.
    """
    done = in_order(problem.num_tasks, before, after)
    order, first = successors(problem.num_tasks, before)
    target, bounds = after[order].tolist(), first.tolist()
    reach = (problem.duration[before] + problem.edges.lag)[order].tolist()
    least = np.iinfo(np.int64).min // 4
    chain: list[int] = np.where(problem.rank_of_task != NONE, 0, least).tolist()
    for task in done or ():
        begun = chain[task]
        for edge in range(bounds[task], bounds[task + 1]):
            chain[target[edge]] = max(chain[target[edge]], begun + reach[edge])
    return chain


def _least(problem: Problem, chain: list[int]) -> list[int]:
    least: dict[int, int] = {}
    for task, resource in zip(
        problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
    ):
        least[resource] = min(chain[task], least.get(resource, chain[task]))
    return [least.get(rank, 0) for rank in range(problem.num_ranks)]


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
