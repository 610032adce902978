"""Room in memory: whether a task may start sooner than it does, and from when on it might.

With a task moved from its start S to s, each store that it changes has another load: what the task
changes at its start comes at s and not at S, what it changes at its end at s + d and not at S + d
(d ticks long). The load *is raised* where the difference is above 0. A move has room if no load
that it raises exceeds its capacity there, with all that was moved before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.idle.timed_rows import TimedRows
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.memory import memory_profile

Change = tuple[int, int, int]  # store, delta at the start, delta at the end
Moved = tuple[int, int]  # a task, and where it starts instead


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Room:
    """The loads of stores with a capacity, and what each task changes in them.

    ``time[s]`` and ``level[s]`` are the steps of store s: ``level[s][i]`` holds from ``time[s][i]``
    on. ``changes[t]`` are those of task t in stores with a capacity; ``when[s]`` are the ticks of
    all changes of store s and ``whose[s]`` their tasks.
    """

    rows: TimedRows
    time: dict[int, Ints]
    level: dict[int, Ints]
    when: dict[int, Ints]
    whose: dict[int, Ints]
    changes: dict[int, tuple[Change, ...]]

    def blocked(self, task: int, at: int, moved: Sequence[Moved]) -> int:
        """The first store without room for the task from tick ``at`` on; ``NONE`` where all have.

        Parameters
        ----------
        task
            The task's index in the problem.
        at
            The tick at which it would start.
        moved
            Tasks that start elsewhere than in the schedule, each with its tick.

        Returns
        -------
        int
            The store's index, or ``NONE``.
        """
        for change in self.changes.get(task, ()):
            if raises(change) and self._exceeds(task, at, change, moved):
                return change[0]
        return NONE

    def until(self, task: int, at: int, moved: Sequence[Moved]) -> tuple[int, int]:
        """The first tick after ``at`` that has room, and whose release makes it (``NONE``: nobody).

        Precondition: ``at`` has none. A task's own start has.

        Parameters
        ----------
        task
            The task's index in the problem.
        at
            A tick before its own start.
        moved
            Tasks that start elsewhere than in the schedule, each with its tick.

        Returns
        -------
        tuple[int, int]
            The tick, and the index of the task that releases.
        """
        own = int(self.rows.start[task])
        for tick in self._instants(task, at, own, moved):
            if self.blocked(task, tick, moved) == NONE:
                own = tick
                break
        return own, self._release(self.blocked(task, own - 1, moved), own, task)

    def made_room(self, task: int) -> int:
        """Whose release makes room for a task just as it starts; ``NONE`` where it had some.

        Parameters
        ----------
        task
            The task's index in the problem.

        Returns
        -------
        int
            The index of the task that releases, or ``NONE``.
        """
        own = int(self.rows.start[task])
        store = self.blocked(task, own - 1, ())
        return NONE if store == NONE else self._release(store, own, task)

    def _instants(self, task: int, at: int, own: int, moved: Sequence[Moved]) -> list[int]:
        """The ticks between two at which room may begin."""
        found: set[int] = set()
        ticks = int(self.rows.problem.duration[task])
        for store, _, last in self.changes[task]:
            low, high = np.searchsorted(self.time[store], [at, own + ticks])
            steps = [*self.time[store][low:high].tolist(), *self._steps(store, moved)[0].tolist()]
            found.update(steps)
            found.update(tick - ticks for tick in steps if last > 0)  # held from its end on
        return sorted(tick for tick in found if at < tick < own)

    def _release(self, store: int, tick: int, task: int) -> int:
        """Who gives most memory of a store back at a tick, the task itself excepted."""
        start, end = self.rows.start, self.rows.end
        most, found = 0, NONE
        low, high = np.searchsorted(self.when[store], [tick, tick + 1])
        for other in sorted(set(self.whose[store][low:high].tolist()) - {task}):
            for where, first, last in self.changes[other]:
                here = first * (start[other] == tick) + last * (end[other] == tick)
                if where == store and here < most:
                    most, found = int(here), other
        return found

    def _exceeds(self, task: int, at: int, change: Change, moved: Sequence[Moved]) -> bool:
        store = change[0]
        steps, sizes = self._difference(task, at, change)
        others, their_sizes = self._steps(store, moved)
        low, high = np.searchsorted(self.time[store], [at, int(self.rows.end[task])])
        ticks = np.concatenate([self.time[store][low:high], steps, others])
        raised = _sums(steps, sizes, ticks)
        load = self._load(store, ticks) + raised + _sums(others, their_sizes, ticks)
        capacity = self.rows.problem.stores[store].capacity
        return capacity is not None and bool(((raised > 0) & (load > capacity)).any())

    def _steps(self, store: int, moved: Sequence[Moved]) -> tuple[Ints, Ints]:
        """The differences that moved tasks make to a store: (ticks, sizes)."""
        pairs = [
            self._difference(task, at, change)
            for task, at in moved
            for change in self.changes.get(task, ())
            if change[0] == store
        ]
        empty = np.zeros(0, dtype=np.int64)
        return (
            np.concatenate([ticks for ticks, _ in pairs] or [empty]),
            np.concatenate([sizes for _, sizes in pairs] or [empty]),
        )

    def _difference(self, task: int, at: int, change: Change) -> tuple[Ints, Ints]:
        _, first, last = change
        own, ticks = int(self.rows.start[task]), int(self.rows.problem.duration[task])
        return (
            np.array([at, own, at + ticks, own + ticks], dtype=np.int64),
            np.array([first, -first, last, -last], dtype=np.int64),
        )

    def _load(self, store: int, ticks: Ints) -> Ints:
        """The loads of the schedule as it is."""
        return self.level[store][np.searchsorted(self.time[store], ticks, side="right")]


def raises(change: Change) -> bool:
    """Whether a task with this change raises a load anywhere by starting sooner."""
    _, first, last = change
    return first > 0 or last > 0 or first + last > 0


def _sums(steps: Ints, sizes: Ints, ticks: Ints) -> Ints:
    """The sum of the steps up to each of the ticks."""
    if not len(steps):
        return np.zeros(len(ticks), dtype=np.int64)
    summed: Ints = ((steps[None, :] <= ticks[:, None]) * sizes[None, :]).sum(axis=1)
    return summed


def room_of(rows: TimedRows) -> Room:
    """The room that a schedule leaves in the stores that have a capacity."""
    problem, events = rows.problem, rows.problem.events
    there = np.flatnonzero(rows.is_there)
    profile = memory_profile(problem, there, rows.start[there])
    time, level, when, whose = {}, {}, {}, {}
    for number, store in enumerate(problem.stores):
        if store.capacity is not None:
            mine = profile.store == number
            when[number], whose[number] = profile.time[mine], events.task[profile.event[mine]]
            mine &= profile.is_settled
            time[number] = profile.time[mine]
            level[number] = np.concatenate([[store.base], profile.level[mine]])
    found: dict[int, dict[int, list[int]]] = {}
    capped = np.isin(events.store, list(time)) & rows.is_there[events.task]
    columns = (events.task, events.at_end, events.store, events.delta)
    for task, at_end, where, delta in zip(*(c[capped].tolist() for c in columns), strict=True):
        change = found.setdefault(task, {}).setdefault(where, [0, 0])
        change[int(at_end)] += delta
    changes = {
        task: tuple((where, first, last) for where, (first, last) in sorted(by_store.items()))
        for task, by_store in found.items()
    }
    return Room(rows=rows, time=time, level=level, when=when, whose=whose, changes=changes)
