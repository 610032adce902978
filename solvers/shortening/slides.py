"""Slides: every action as early, then as late as its inputs, its rank and the memory allow.

A left-shifted schedule runs each rank's actions in a given order. A *slide* also changes the order:
in the order of their starts, actions move one by one to the first free ticks after their inputs
(to the left), or in the reversed order of their ends to the last free ticks before what waits for
them (to the right). An action that takes memory moves left, and one that gives memory back moves
right, only past ticks at which its rank holds less than the limit. No end moves beyond the latest
in a slide, so no slide makes a schedule longer; the second one often makes it shorter, for what the
first packed to the front leaves room at the end, and the start moves up when everything has moved
right. This is forward-backward improvement, or double justification (Valls, Ballestin and
Quintanilla 2005), here with memory that is held from one action to another.

Busy and full ticks of a rank are the bits of one integer: the first free ticks behind a tick are
found by a few operations on it.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

ROUNDS = 4  # both ways; on all shapes looked at nothing changes after the third


def slid_starts(problem: Problem, starts: Ints, limit: int) -> Ints:
    """Starts by task after slides to either side, for as long as they shorten the schedule.

    Preconditions: ``starts`` is a schedule, ranks are the only resources that count, and no rank
    holds more than ``limit`` units where it takes some.

    Parameters
    ----------
    starts
        Ticks per task.
    limit
        Units that a rank may hold.

    Returns
    -------
    Ints
        Ticks per task.
    """
    moving = _Slides(problem, limit)
    found, least = starts, int((starts + problem.duration).max())
    for _ in range(ROUNDS):
        moving.load(found)
        moving.to_the_left()
        moving.to_the_right()
        moved = np.array(moving.start, dtype=np.int64)
        span = int((moved + problem.duration).max() - moved.min())
        if span >= least:
            break
        found, least = moved - moved.min(), span
    return found


class _Slides:
    """One schedule whose actions move; ticks are bits, tick 0 the lowest."""

    def __init__(self, problem: Problem, limit: int) -> None:
        self.problem, self.limit = problem, limit
        self.ticks, self.rank = problem.duration.tolist(), problem.rank_of_task.tolist()
        self.taken, self.given = taken_and_given(problem)
        edges = problem.edges
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in self.ticks]
        self.outputs: list[list[tuple[int, int]]] = [[] for _ in self.ticks]
        columns = (edges.before.tolist(), edges.after.tolist(), edges.lag.tolist())
        for before, after, lag in zip(*columns, strict=True):
            self.inputs[after].append((before, lag))
            self.outputs[before].append((after, lag))
        self.start: list[int] = []

    def load(self, starts: Ints) -> None:
        """Begin with these starts, the first of them 0."""
        problem = self.problem
        ends = starts + problem.duration
        self.start, self.end = starts.tolist(), int(ends.max())
        self.busy = [0] * problem.num_ranks
        for task, rank in enumerate(self.rank):
            self.busy[rank] |= _bits(self.ticks[task]) << self.start[task]
        change = np.zeros((problem.num_ranks, self.end + 1), dtype=np.int64)
        np.add.at(change, (problem.rank_of_task, starts), self.taken)
        np.subtract.at(change, (problem.rank_of_task, ends), self.given)
        held = np.cumsum(change, axis=1)
        self.held = held.tolist()
        self.full = [
            sum(1 << tick for tick in np.flatnonzero(row >= self.limit).tolist()) for row in held
        ]

    def to_the_left(self) -> None:
        start, ticks = self.start, self.ticks
        for task in sorted(range(len(start)), key=start.__getitem__):
            now, rank, length = start[task], self.rank[task], ticks[task]
            first = max((start[t] + ticks[t] + lag for t, lag in self.inputs[task]), default=0)
            if self.taken[task]:
                first = max(first, (self.full[rank] & _bits(now)).bit_length())
            if first >= now:
                continue
            others = self.busy[rank] & ~(_bits(length) << now)
            free = _runs(~others >> first, length)
            self._move(task, first + (free & -free).bit_length() - 1, others)

    def to_the_right(self) -> None:
        start, ticks = self.start, self.ticks
        for task in sorted(range(len(start)), key=lambda t: -start[t] - ticks[t]):
            now, rank, length = start[task], self.rank[task], ticks[task]
            last = min((start[t] - lag for t, lag in self.outputs[task]), default=self.end) - length
            if self.given[task]:
                full = self.full[rank] >> now + length
                last = min(last, now + (full & -full).bit_length() - 1) if full else last
            if last <= now:
                continue
            others = self.busy[rank] & ~(_bits(length) << now)
            free = _runs(~others & _bits(last + length), length)
            self._move(task, free.bit_length() - 1, others)

    def _move(self, task: int, to: int, others: int) -> None:
        """Let a task start in tick ``to``; its rank is busy with ``others`` as well."""
        now, rank, length = self.start[task], self.rank[task], self.ticks[task]
        if to == now:
            return
        self.busy[rank] = others | _bits(length) << to
        self.start[task] = to
        side = 1 if to < now else -1
        low, high = min(to, now), max(to, now)
        if self.taken[task]:
            self._hold(rank, low, high, side * self.taken[task])
        if self.given[task]:
            self._hold(rank, low + length, high + length, -side * self.given[task])

    def _hold(self, rank: int, first: int, end: int, more: int) -> None:
        """The rank holds ``more`` units in the ticks from ``first`` to before ``end``."""
        held, full = self.held[rank], self.full[rank]
        for tick in range(first, end):
            held[tick] += more
            if held[tick] >= self.limit:
                full |= 1 << tick
            else:
                full &= ~(1 << tick)
        self.full[rank] = full


def _bits(count: int) -> int:
    """The lowest ``count`` bits."""
    return (1 << count) - 1


def _runs(free: int, length: int) -> int:
    """The bits at which ``length`` free ones begin (for a length of 0, any bit)."""
    found = free if length else -1
    for tick in range(1, length):
        found &= free >> tick
    return found


def taken_and_given(problem: Problem) -> tuple[list[int], list[int]]:
    """Units that each task takes when it starts and gives back when it ends, on its own rank."""
    events = problem.events
    own = problem.rank_of_task[events.task] == events.store
    taken = np.zeros(problem.num_tasks, dtype=np.int64)
    given = np.zeros(problem.num_tasks, dtype=np.int64)
    starts, ends = own & ~events.at_end, own & events.at_end
    np.add.at(taken, events.task[starts], events.delta[starts])
    np.add.at(given, events.task[ends], -events.delta[ends])
    return taken.tolist(), given.tolist()
