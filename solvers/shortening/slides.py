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

``slid_order`` makes an order so. As for every family it depends on the shape alone: it is chosen at
ticks of 1 (tF = tI = tW; tF = tB and tF = 1, tB = 2 where backwards are full). It holds no more
than the order that it is made of and idles no more inside a rank's span (``span_idle``), and at
neither of the two is it longer. A rank holds a unit from F to the end of B or W.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

ROUNDS = 4  # both ways; on all shapes looked at nothing changes after the third


def slid_order(pipeline: Pipeline, published: Program) -> Program | None:
    """The shortest order that slides make of the published one; None where none is shorter.

    Right whatever slides do: each order is timed anew, and taken only where none of its costs
    (makespans, idle time, the fullest rank) is above the published order's and one is below.
    Precondition: each rank's tasks are F, B, I and W, and a rank holds each stage once.

    Parameters
    ----------
    pipeline
        The shape: a forward takes 1 tick, as I and W do, and nothing else is set.
    published
        An order of it.
    """
    ticks = (2,) if pipeline.split_backward else (2, 1)
    problems = [pipeline.with_changes(backward=each).problem() for each in ticks]
    base = least = _costs(problems, published)
    found = None
    for problem in problems:
        schedule = left_shift(problem, published)
        starts = np.empty(problem.num_tasks, dtype=np.int64)
        starts[problem.locate(published.actions)] = schedule.start
        limit = max(measure(problem, schedule).peak_activations)
        order = _in_order(problem, slid_starts(problem, starts, limit))
        costs = _costs(problems, order)
        if costs < least and all(map(le, costs, base)):
            found, least = order, costs
    return found


def _in_order(problem: Problem, starts: Ints) -> Program:
    """The order in which tasks start on each rank, microbatches renumbered to run in turn.

    They are alike, so the i-th start of a kind and stage on a rank may be that of the i-th
    microbatch there: what held between all pairs holds between the sorted ones.
    """
    rank, actions = problem.rank_of_task, problem.actions
    by_start = np.lexsort((starts, actions.stage, actions.kind, rank))
    by_number = np.lexsort((actions.microbatch, actions.stage, actions.kind, rank))
    in_turn = np.empty_like(starts)
    in_turn[by_number] = starts[by_start]
    order = np.lexsort((in_turn + problem.duration, in_turn, rank))
    return Program(actions=problem.actions.take(order), resource=rank[order])


def _costs(problems: Sequence[Problem], program: Program) -> tuple[int, ...]:
    """Makespan at each of the ticks, then span_idle at each, then the fullest rank's peak."""
    found = [measure(problem, left_shift(problem, program)) for problem in problems]
    peak = max(found[0].peak_activations)
    return (*(m.makespan for m in found), *(m.span_idle for m in found), peak)


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
