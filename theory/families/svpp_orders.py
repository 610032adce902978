"""Orders for slices: one list scheduler that runs slice-level pipelines under a limit of slices.

Symbols: p ranks, m microbatches, v chunks per rank, s slices; one *unit* is the activation of one
slice on one chunk; ``limit`` is the most units any rank may hold, at least v*s. The scheduler walks
through ticks of equal length (every action lasts one) and lets each rank start at most one action:

- a forward and a backward in turn where both can start (MEPipe section 4.1: a bubble between two
  backwards is left for a forward), and whatever can start otherwise;
- forwards depth first in groups of q = max(1, min(p div s, limit div vs)) microbatches: the group's
  chunk 0, its chunk 1, ..., then the next group. Where s < p that fills the bubbles between the
  chunks of the first sample with its successors (section 4.2); no group is larger than the limit.
  The paper does not say what becomes of microbatches that fill no group (see ``group_sizes``);
- backwards of the highest chunk first, then by microbatch, the last slice first;
- with split backwards, W when its rank would wait or needs the room (section 5).

A forward starts only if its rank's bank allows it (``orders.bankers``; a sample needs v*s units),
so no limit of v*s or more can deadlock.

*Many groups.* What the scheduler does next follows from its state: what has started, which W's
wait, and whether a forward was last. Where the state of one tick is that of an earlier
one, D microbatches on, all between repeats for as long as there are full groups; of the groups that
have not begun it looks at the first only, since a later one fits nowhere that an earlier one does
not. So a run of few groups is enough: ``lengthened`` finds two such ticks in it and puts the rest
between them. Where there are none, the run is of all groups.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.bankers import RankBank
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import successors

FORWARDS, BACKWARDS, WEIGHTS = range(3)  # the lists of a rank
FEW = (4, 10)  # full groups of a run that is lengthened


def slice_orders(pipeline: Pipeline, limit: int) -> Program:
    """The orders for a pipeline in loop placement. Precondition: ``limit`` >= v*s.

    Parameters
    ----------
    limit
        Slices that a rank may hold, v s or more.
    """
    return _orders(
        pipeline.num_ranks,
        pipeline.num_microbatches,
        pipeline.num_chunks,
        pipeline.num_slices,
        is_split=pipeline.split_backward is True,
        limit=limit,
    )


@lru_cache(maxsize=32)  # one shape is often wanted with several durations; 65536 tasks are 3 MB
def _orders(p: int, m: int, v: int, s: int, *, is_split: bool, limit: int) -> Program:
    group = max(1, min(p // s, limit // (v * s)))
    shared, plain = (group_sizes(ring, m, s, group) for ring in (p, 0))
    runs = [plain, shared] if is_split and shared != plain else [shared]
    # Where W fills the waits, sharing pays in some shapes only: the fewer ticks.
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        split_backward=is_split,
        backward=2 if is_split else 1,
    )
    found = (_order(pipeline, sizes, limit) for sizes in runs)
    return min(found, key=lambda run: run[1])[0]


def _order(pipeline: Pipeline, sizes: list[int], limit: int) -> tuple[Program, int]:
    """``grouped_order``, of a run of few groups where those show what many do."""
    full = next((i for i, size in enumerate(sizes) if size != sizes[0]), len(sizes))
    for few in FEW:
        if full > 2 * few:
            short = sizes[full - few :]
            problem = pipeline.with_changes(num_microbatches=sum(short)).problem()
            start = _ran(problem, short, limit)
            found = lengthened(problem, start, sizes[0], few, full - few)
            if found is not None:
                return found
    return grouped_order(pipeline.problem(), sizes, limit)


def grouped_order(problem: Problem, sizes: list[int], limit: int) -> tuple[Program, int]:
    """The orders for groups of these sizes, and how many ticks they take.

    Precondition: the pipeline's placement is a loop, and every action lasts one tick.

    Parameters
    ----------
    sizes
        Microbatches of each group, which add up to all.
    limit
        Slices that a rank may hold.

    Raises
    ------
    ValueError
        Where that is less than one sample needs.
    """
    start = _ran(problem, sizes, limit)
    order = np.lexsort([start, problem.rank_of_task])
    actions = problem.actions.take(order)
    return Program(actions=actions, resource=problem.rank_of_task[order]), int(start.max()) + 1


def _ran(problem: Problem, sizes: list[int], limit: int) -> Ints:
    if (start := _SliceRun(problem, sizes, limit).run()) is None:
        raise ValueError(f"no order holds {limit} slices at most: that is less than one sample")
    return start


def lengthened(
    problem: Problem, start: Ints, more: int, few: int, times: int
) -> tuple[Program, int] | None:
    """A run with what it does between two ticks repeated, and its ticks; None if states differ.

    The ticks are those before which the last but one of its full groups begins, and the last one.

    Parameters
    ----------
    start
        The tick of each task, shape (num_tasks,).
    more
        Microbatches of a full group.
    few
        Full groups of the run.
    times
        How often to repeat.
    """
    actions, rank = problem.actions, problem.rank_of_task
    begin, end = (
        int(start[actions.microbatch >= group * more].min()) for group in (few - 2, few - 1)
    )
    ticks = end - begin
    keys = actions.slice, actions.stage, actions.kind, actions.microbatch
    by_microbatch = start[np.lexsort(keys)].reshape(int(actions.microbatch.max()) + 1, -1)
    before, after = by_microbatch[:-more], by_microbatch[more:]
    has_begun = before < begin
    is_under_way = has_begun & ~has_begun.all(axis=1, keepdims=True)
    last = [_is_forward_last(actions.kind, rank, start, now) for now in (begin, end)]
    if not (
        (has_begun == (after < end)).all()
        and (by_microbatch[:more] < end).all()
        and (after - before == ticks)[is_under_way].all()
        and (last[0] == last[1]).all()
    ):
        return None
    tasks, turns = [], []
    for row in np.split(np.lexsort([start, rank]), np.cumsum(np.bincount(rank))[:-1]):
        first, last = np.searchsorted(start[row], (begin, end)).tolist()
        tasks += [row[:first], np.tile(row[first:last], times + 1), row[last:]]
        turn = np.repeat(np.arange(times + 1), last - first)
        turns += [np.zeros(first, dtype=np.int64), turn, np.full(len(row) - last, times)]
    task, turn = np.concatenate(tasks), np.concatenate(turns)
    microbatch = actions.microbatch[task] + turn * more
    table = ActionTable.of(actions.kind[task], actions.stage[task], microbatch, actions.slice[task])
    return Program(actions=table, resource=rank[task]), int(start.max()) + 1 + times * ticks


def _is_forward_last(kind: Ints, rank: Ints, start: Ints, now: int) -> Bools:
    """Whether the last of F and I that each rank began before ``now`` is F."""
    latest = np.full((2, int(rank.max()) + 1), -1)
    for row, is_meant in zip(
        latest, (kind == Kind.F, ~np.isin(kind, [Kind.F, Kind.W])), strict=True
    ):
        chosen = is_meant & (start < now)
        np.maximum.at(row, rank[chosen], start[chosen])
    found: Bools = latest[0] > latest[1]
    return found


def group_sizes(p: int, m: int, s: int, group: int) -> list[int]:
    """How many microbatches pass the chunks together: full groups, then what is left of m.

    A group needs p slots from one chunk to the next and brings one per slice; the next group fills
    the rest. Behind the last group nothing comes: where its slices fill less than half of the ring,
    it and the one before share their microbatches evenly, the smaller share first. (Two groups of 2
    and 1 stay as they are: shared, they wait longer for backwards of 2 ticks.)

    Parameters
    ----------
    p, m, s
        Ranks, microbatches, and slices of a sample.
    group
        Microbatches of a full group.

    Examples
    --------
    >>> group_sizes(8, 17, 1, 8)
    [8, 4, 5]
    """
    full, rest = divmod(m, group)
    if not rest:
        return [group] * full
    if full > (group == 2) and 2 * rest * s < p:
        both = group + rest
        return [group] * (full - 1) + [both // 2, both - both // 2]
    return [group] * full + [rest]


class _SliceRun:
    """One run, tick by tick, by the rules of the module. Tasks are numbered by their places."""

    def __init__(self, problem: Problem, sizes: list[int], limit: int) -> None:
        actions, edges, num_tasks = problem.actions, problem.edges, problem.num_tasks
        order = _by_priority(problem, sizes)
        self.place: Ints = np.empty(num_tasks, dtype=np.int64)
        self.place[order] = np.arange(num_tasks)
        kind = actions.kind[order]
        which = np.select([kind == Kind.F, kind == Kind.W], [FORWARDS, WEIGHTS], BACKWARDS)
        self.which: list[int] = which.tolist()
        self.home: list[int] = problem.rank_of_task[order].tolist()
        self.microbatch: list[int] = actions.microbatch[order].tolist()
        after = self.place[edges.after]
        by_origin, first = successors(num_tasks, self.place[edges.before])
        self.after: list[int] = after[by_origin].tolist()
        self.first: list[int] = first.tolist()
        self.waits: list[int] = np.bincount(after, minlength=num_tasks).tolist()
        units = (actions.kind == Kind.F) & (problem.rank_of_task == 0) & (actions.microbatch == 0)
        need, ranks = [int(units.sum())] * sum(sizes), range(problem.num_ranks)
        self.banks = [RankBank(need) for _ in ranks]
        self.ready: list[tuple[list[int], list[int], list[int]]] = [([], [], []) for _ in ranks]
        self.queue = [self.ready[home][w] for home, w in zip(self.home, self.which, strict=True)]
        self.forward_was_last = [False] * len(ranks)
        self.limit = limit

    def run(self) -> Ints | None:
        """The tick of each task, shape (num_tasks,); None where it got stuck."""
        start, now = [-1] * len(self.waits), 0
        for task in np.flatnonzero(np.array(self.waits) == 0).tolist():
            self.queue[task].append(task)
        ranks = range(len(self.ready))
        while begun := [one for rank in ranks if (one := self._chosen(rank)) is not None]:
            for task in begun:
                start[task] = now
            self._end(begun)
            now += 1
        found: Ints = np.array(start)[self.place]
        return None if -1 in start else found

    def _chosen(self, rank: int) -> int | None:
        """Forward and backward in turn where both can start, else what can, and last of all W."""
        forwards, backwards, weights = self.ready[rank]
        was_last = self.forward_was_last
        if forwards and not (backwards and was_last[rank]):
            task = self._fitting(rank)
            if task is not None:
                was_last[rank] = True
                return task
        if backwards:
            was_last[rank] = False
            return heappop(backwards)
        return weights.pop(0) if weights else None  # they stand in line as their I's ran

    def _fitting(self, rank: int) -> int | None:
        """The first forward that the rank's bank allows, which takes a unit."""
        forwards, _, weights = self.ready[rank]
        bank = self.banks[rank]
        # Slices that wait for W alone have their places beside the bank.
        if bank.load >= (room := self.limit - len(weights)):
            return None
        found, passed = None, []
        while forwards and found is None:
            microbatch = self.microbatch[task := heappop(forwards)]
            if bank.allows(microbatch, 1, 1, room):
                bank.take(microbatch, 1, 1)
                found = task
            else:
                passed.append(task)
        for task in passed:
            heappush(forwards, task)
        return found

    def _end(self, tasks: list[int]) -> None:
        """A backward gives its unit back, or leaves it to W; what waited for a task is ready."""
        which, queue, waits = self.which, self.queue, self.waits
        first, after = self.first, self.after
        for task in tasks:
            if which[task] == BACKWARDS:
                self.banks[self.home[task]].give(self.microbatch[task], 1)
            for row in range(first[task], first[task + 1]):
                later = after[row]
                waits[later] = left = waits[later] - 1
                if left:
                    continue
                if which[later] == WEIGHTS:
                    queue[later].append(later)
                else:
                    heappush(queue[later], later)


def _by_priority(problem: Problem, sizes: list[int]) -> Ints:
    """The tasks, forwards by their places among forwards, and backwards among backwards."""
    actions = problem.actions
    chunk = actions.stage // problem.num_ranks
    group = np.repeat(np.arange(len(sizes)), sizes)[actions.microbatch]
    is_forward = actions.kind == Kind.F
    way = np.where(is_forward, 1, -1)
    keys = way * actions.slice, actions.microbatch, way * chunk, np.where(is_forward, group, 0)
    return np.lexsort(keys)
