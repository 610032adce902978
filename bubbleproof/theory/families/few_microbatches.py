"""Few microbatches: orders found by list scheduling where a published one is made for many.

A published order repeats a pattern; while it fills and drains, and before it has repeated, other
orders can be shorter. With few microbatches that is most of the run. So a handful of list schedules
is played through, and the shortest order is taken that holds no more than the published one and
idles no more inside a rank's span (``span_idle``): the published one itself unless another is
shorter, or as long with less idle time. As for every family the order depends on the shape alone:
it is chosen at ticks of 1 (tF = tI = tW; tF = tB and tF = 1, tB = 2 where backwards are full, and
at neither of the two may it be longer than the published order).

Each list schedule takes, on a free rank, the first task in its *ranking* that is ready and has
room. Rankings, W always last (it fills waits):

- ``forwards``: forwards before backwards, later stages first; then backwards, earlier stages first;
- ``backwards``: the same with backwards before forwards;
- ``turn``: backwards of the last chunk, then forwards, then other backwards;
- ``published``: the published order, in which a ready task overtakes one that waits.

A rank holds a unit from F to the end of B or W, and no more units than the fullest rank of the
published order. A microbatch whose first forward a rank takes needs room for its forwards on later
chunks too. Opening one therefore can keep units *in reserve*: none, for that microbatch and one
more, or for all forwards that open microbatches lack. Without reserve a run may get stuck; it is
dropped then.

The rankings are ours, found by comparing with exact optima for p <= 6 (docs/optimality.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import product
from operator import le

import numpy as np

from bubbleproof.theory.actions import BACKWARD_KINDS, Ints, Kind
from bubbleproof.theory.measures import measure
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program
from bubbleproof.theory.timing import left_shift

RESERVES = (0, 1, 1 << 30)
PLAIN: dict[str, object] = {
    **dict.fromkeys(("forward", "input_backward", "weight_backward", "activation"), 1),
    **dict.fromkeys(("latency", "released_at_input", "static"), 0),
    **dict.fromkeys(("weight_parts", "links"), ()),
    "capacity": None,
}


def shortest_order(pipeline: Pipeline, published: Program) -> Program:
    """The shortest of the published order and the list schedules that hold and idle no more.

    Precondition: each rank's tasks are F, B, I and W, and a rank holds each stage once.
    """
    problems = [
        pipeline.with_changes(**PLAIN, backward=ticks).problem()
        for ticks in ((2,) if pipeline.split_backward else (2, 1))
    ]
    limit = _most_units(problems[0], published)
    base = _costs(problems, published)
    best, least = published, base
    for problem in problems:
        for ranking, reserve in product(_rankings(pipeline, problem, published), RESERVES):
            program = _ListSchedule(problem, ranking, limit, reserve).program()
            if program is None:
                continue
            costs = _costs(problems, program)
            if all(map(le, costs, base)) and costs < least:
                best, least = program, costs
    return best


def _costs(problems: Sequence[Problem], program: Program) -> tuple[int, ...]:
    """Makespan at each of the ticks, then span_idle at each, then the fullest rank's peak."""
    found = [measure(problem, left_shift(problem, program)) for problem in problems]
    peak = max(found[0].peak_activations)
    return (*(m.makespan for m in found), *(m.span_idle for m in found), peak)


def _most_units(problem: Problem, program: Program) -> int:
    """The most units that any rank holds; a unit is held from F to B, or to W where it is split."""
    actions = program.actions
    ends = Kind.W if problem.actions.is_kind(Kind.W).any() else Kind.B
    change = (actions.kind == Kind.F).astype(np.int64)
    ended = np.append(0, (actions.kind == ends)[:-1]).astype(np.int64)
    most = 0
    for rank in range(problem.num_ranks):
        own = program.resource == rank
        taken, given = change[own], ended[own]
        given[:1] = 0  # the row before belongs to another rank
        most = max(most, int(np.cumsum(taken - given).max(initial=0)))
    return most


def _rankings(pipeline: Pipeline, problem: Problem, published: Program) -> Iterator[Ints]:
    """The place of every task, the first to take least, once per ranking of the module's text."""
    actions, stages = problem.actions, pipeline.num_stages
    chunk, later = actions.stage // pipeline.num_ranks, stages - actions.stage
    is_forward, is_backward = actions.kind == Kind.F, actions.is_kind(*BACKWARD_KINDS)
    is_turn = is_backward & (chunk == pipeline.num_chunks - 1)
    by_chunk = np.where(is_forward, pipeline.num_chunks - 1 - chunk, chunk)
    place = np.empty(problem.num_tasks, dtype=np.int64)
    place[problem.locate(published.actions)] = np.arange(len(published))
    within = (later, actions.microbatch, by_chunk)
    yield _ranked(*within, np.select([is_forward, is_backward], [0, 1], 2))
    yield _ranked(*within, np.select([is_forward, is_backward], [1, 0], 2))
    yield _ranked(*within, np.select([is_turn, is_forward, is_backward], [0, 1, 2], 3))
    yield _ranked(place, np.where(actions.kind == Kind.W, 1, 0))


def _ranked(*keys: Ints) -> Ints:
    """The place of each task by the last key, then the one before it, and so on."""
    place = np.empty(len(keys[0]), dtype=np.int64)
    place[np.lexsort(keys)] = np.arange(len(place))
    return place


class _ListSchedule:
    """One run of all ranks at the problem's ticks; the order in which they act is the result."""

    def __init__(self, problem: Problem, ranking: Ints, limit: int, reserve: int) -> None:
        self.problem, self.limit, self.reserve = problem, limit, reserve
        actions, edges = problem.actions, problem.edges
        self.ranking, self.ticks = ranking.tolist(), problem.duration.tolist()
        self.rank, self.microbatch = problem.rank_of_task.tolist(), actions.microbatch.tolist()
        self.opens = (actions.kind == Kind.F).tolist()
        last = Kind.W if actions.is_kind(Kind.W).any() else Kind.B
        self.closes = (actions.kind == last).tolist()
        self.after: list[list[tuple[int, int]]] = [[] for _ in self.ticks]
        columns = (edges.before.tolist(), edges.after.tolist(), edges.lag.tolist())
        for before, after, lag in zip(*columns, strict=True):
            self.after[before].append((after, lag))
        self.waits = np.bincount(edges.after, minlength=problem.num_tasks).tolist()
        self.arrival = [0] * problem.num_tasks
        self.lacking = np.zeros((problem.num_ranks, max(self.microbatch) + 1), dtype=int).tolist()
        for task in np.flatnonzero(actions.kind == Kind.F).tolist():
            self.lacking[self.rank[task]][self.microbatch[task]] += 1
        self.unopened = [list(row) for row in self.lacking]
        self.promised = [0] * problem.num_ranks  # forwards that open microbatches lack
        self.held = [0] * problem.num_ranks
        self.free_at = [0] * problem.num_ranks
        self.ready: list[list[tuple[int, int]]] = [[] for _ in self.held]
        self.done: list[list[int]] = [[] for _ in self.held]
        # (time, has it only become ready?, task); ends come before what becomes ready
        self.events = [(0, True, task) for task, count in enumerate(self.waits) if not count]

    def program(self) -> Program | None:
        """The orders of the ranks, or None where the run gets stuck for lack of room."""
        heapq.heapify(self.events)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, is_ready, task = heapq.heappop(self.events)
                if is_ready:
                    heapq.heappush(self.ready[self.rank[task]], (self.ranking[task], task))
                else:
                    self._finish(task, now)
            for rank, free_at in enumerate(self.free_at):
                if free_at <= now and (chosen := self._choose(rank)) is not None:
                    self._start(rank, chosen, now)
        sizes = [len(order) for order in self.done]
        if sum(sizes) < self.problem.num_tasks:
            return None
        order = np.concatenate([np.array(row, dtype=np.int64) for row in self.done])
        return Program(
            actions=self.problem.actions.take(order),
            resource=np.repeat(np.arange(len(sizes)), sizes),
        )

    def _choose(self, rank: int) -> int | None:
        """Take the first ready task that has room; the ones passed over stay ready."""
        passed: list[tuple[int, int]] = []
        chosen: int | None = None
        while self.ready[rank] and chosen is None:
            entry = heapq.heappop(self.ready[rank])
            if self._has_room(rank, entry[1]):
                chosen = entry[1]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(self.ready[rank], entry)
        return chosen

    def _has_room(self, rank: int, task: int) -> bool:
        if not self.opens[task]:
            return True
        microbatch, needed = self.microbatch[task], self.held[rank] + 1
        lacking = self.lacking[rank][microbatch]
        if self.reserve and lacking == self.unopened[rank][microbatch]:
            needed += min(self.promised[rank], self.reserve) + lacking - 1
        return needed <= self.limit

    def _start(self, rank: int, task: int, now: int) -> None:
        if self.opens[task]:
            microbatch = self.microbatch[task]
            lacking = self.lacking[rank][microbatch]
            is_first = lacking == self.unopened[rank][microbatch]
            self.promised[rank] += lacking - 1 if is_first else -1
            self.lacking[rank][microbatch] -= 1
            self.held[rank] += 1
        self.done[rank].append(task)
        self.free_at[rank] = now + self.ticks[task]
        heapq.heappush(self.events, (now + self.ticks[task], False, task))

    def _finish(self, task: int, now: int) -> None:
        self.held[self.rank[task]] -= self.closes[task]
        for later, lag in self.after[task]:
            self.arrival[later] = max(self.arrival[later], now + lag)
            self.waits[later] -= 1
            if not self.waits[later]:
                heapq.heappush(self.events, (self.arrival[later], True, later))
