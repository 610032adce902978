"""Which task of a rank could have run in a stretch of its idle time (docs/guide/design.md §2).

A stretch ends when the rank's next task starts. Offered are that task and every later one of the
rank; all but the next must be ready, take at least a tick, and end before the stretch does. Tasks
that take as long and change memory alike, and occupy the rank alone, are asked in the rank's order:
where the first of them that is ready has no room, a later one, held from longer before its start,
has none either.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bubbleproof.theory.idle.room import Moved, Room
from bubbleproof.theory.idle.timed_rows import TimedRows
from bubbleproof.theory.model.actions import NONE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alike:
    """Tasks of a rank that differ in nothing but their time: their places in its order.

    ``soonest[i]`` is the tick at which the first of those from the i-th on is ready; all take
    ``ticks``.
    """

    ticks: int
    place: list[int]
    task: list[int]
    ready: list[int]
    soonest: list[int]


def groups_of(rows: TimedRows, room: Room, rank: int) -> list[Alike]:
    """The tasks of a rank by what they take and hold; those of 0 ticks are left out.

    Parameters
    ----------
    rank
        A rank of the problem, from 0 on.

    Returns
    -------
    list[Alike]
        Tasks that take as many ticks and change the same stores alike, where they occupy nothing
        but the rank and raise no load at their end; every other task is a group of its own.
    """
    tasks = rows.tasks_of[rank]
    found: dict[object, list[int]] = {}
    for place, task in enumerate(tasks.tolist()):
        ticks, changes = int(rows.problem.duration[task]), room.changes.get(task, ())
        is_alone = len(rows.homes[task]) == 1 and all(last <= 0 for _, _, last in changes)
        if ticks:
            key = (ticks, changes) if is_alone else ("alone", place)
            found.setdefault(key, []).append(place)
    groups = []
    for places in found.values():
        column = np.array(places, dtype=np.int64)
        ready = rows.ready[tasks[column]]
        soonest = np.minimum.accumulate(ready[::-1])[::-1]
        named = {"task": tasks[column], "ready": ready, "soonest": soonest}
        columns = {name: values.tolist() for name, values in named.items()}
        ticks = int(rows.problem.duration[tasks[places[0]]])
        groups.append(Alike(ticks=ticks, place=places, **columns))
    return groups


@dataclass(slots=True, kw_only=True, eq=False)
class Offer:
    """What one stretch of idle time, up to the start of the task at ``place``, offers to run.

    ``moved`` are the tasks that were charged with time of it and hold memory there; ``spent``
    those that are not offered again.
    """

    rows: TimedRows
    room: Room
    rank: int
    place: int
    groups: list[Alike]
    moved: list[Moved] = field(default_factory=list)
    spent: set[int] = field(default_factory=set)
    next_task: int = field(init=False)  # with whose start the stretch ends
    end: int = field(init=False)
    _seen: dict[int, list[int]] = field(default_factory=dict)  # of the groups that were asked
    _next: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_task = int(self.rows.tasks_of[self.rank][self.place])
        self.end = int(self.rows.start[self.next_task])

    def ready_at(self, tick: int) -> Iterator[int]:
        """The tasks that could start at a tick but for memory, in the rank's order, one a group.

        Parameters
        ----------
        tick
            An instant within the stretch that is asked about.
        """
        upcoming = self.next_task
        if self.rows.ready[upcoming] <= tick and self.holder(upcoming, tick) == NONE:
            yield upcoming
        for _, task in sorted(self._firsts(tick)):
            if self.holder(task, tick) == NONE:
                yield task

    def _firsts(self, tick: int) -> Iterator[tuple[int, int]]:
        """Of each group the first that is ready and ends in time, with its place."""
        for number, group in enumerate(self.groups):
            ticks = group.ticks
            if tick + ticks <= self.end:
                for row in self._rows(number, self.end - ticks):
                    if group.ready[row] <= tick and group.task[row] not in self.spent:
                        yield group.place[row], group.task[row]
                        break

    def next_arrival(self, tick: int) -> int:
        """The first tick after the given one that may offer another task; else the end.

        That is where one is ready, or where what one shares with others is free.

        Parameters
        ----------
        tick
            An instant within the stretch that is asked about.
        """
        soonest = self.end
        for number, group in enumerate(self.groups):
            for row in self._rows(number, self.end - group.ticks):
                if tick < group.ready[row] < soonest:
                    soonest = group.ready[row]
                held = self.holder(group.task[row], tick)
                if held != NONE:
                    soonest = min(soonest, int(self.rows.end[held]))
        return soonest

    def holder(self, task: int, tick: int) -> int:
        """Who occupies one of the task's other resources while it would run; ``NONE``: nobody.

        Parameters
        ----------
        task
            The task's index in the problem.
        tick
            The instant at which it would start.

        Returns
        -------
        int
            The index of a task, or ``NONE``.
        """
        ends = tick + int(self.rows.problem.duration[task])
        for resource in self.rows.homes[task]:
            if resource != self.rank:
                others = self.rows.tasks_of[resource]
                begins, until = self.rows.start[others], self.rows.end[others]
                held = others[(begins < ends) & (until > tick) & (others != task)]
                if len(held):
                    return int(held[0])
        return NONE

    def _rows(self, number: int, latest: int) -> Iterator[int]:
        """The rows of a group that are ready by a tick, in the rank's order; each is found once."""
        group, seen = self.groups[number], self._seen.setdefault(number, [])
        if number not in self._next:
            self._next[number] = bisect_right(group.place, self.place)
        yield from seen
        while self._next[number] < len(group.place):
            row = self._next[number]
            if group.soonest[row] > latest:
                break
            self._next[number] += 1
            if group.ready[row] <= latest:
                seen.append(row)
                yield row
