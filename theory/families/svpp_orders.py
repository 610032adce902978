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
from heapq import heappop

import numpy as np

from bubbleproof.theory.families.base import program_of_tasks
from bubbleproof.theory.model.actions import ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.bankers import RankBank
from bubbleproof.theory.orders.ready_lists import ReadyLists
from bubbleproof.theory.orders.task_lists import task_lists
from bubbleproof.theory.pipelines.pipeline import Pipeline

FORWARDS, BACKWARDS, WEIGHTS = range(3)  # the lists of a rank
FEW = (5, 10)  # full groups of a run that is lengthened


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
            start = np.array(_ran(problem, short, limit).start)
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
    run = _ran(problem, sizes, limit)
    return program_of_tasks(problem, run.orders), max(run.start) + 1


def _ran(problem: Problem, sizes: list[int], limit: int) -> _SliceRun:
    run = _SliceRun(problem, sizes, limit)
    if not run.run():
        raise ValueError(f"no order holds {limit} slices at most: that is less than one sample")
    return run


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
    between = np.flatnonzero((begin <= start) & (start < end))
    head, tail = np.flatnonzero(start < begin), np.flatnonzero(start >= begin)
    task = np.concatenate([head, np.tile(between, times), tail])
    turn = np.repeat([0, *range(times), times], [len(head), *[len(between)] * times, len(tail)])
    order = np.lexsort([start[task] + turn * ticks, rank[task]])
    task, turn = task[order], turn[order]
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


class _SliceRun(ReadyLists):
    """One run, tick by tick, by the rules of the module."""

    def __init__(self, problem: Problem, sizes: list[int], limit: int) -> None:
        actions, p = problem.actions, problem.num_ranks
        kind, rank = actions.kind, problem.rank_of_task
        which = np.select([kind == Kind.F, kind == Kind.W], [FORWARDS, WEIGHTS], BACKWARDS)
        queue = (3 * rank + which).tolist()
        super().__init__(task_lists(problem), _priority(problem, sizes), queue, lists=3)
        self.most, self.limit = limit, [limit] * p
        self.which: list[int] = which.tolist()
        edges, is_weight = problem.edges, kind == Kind.W
        behind = is_weight[edges.after]
        self.is_split = bool(behind.any())
        weight = np.zeros(problem.num_tasks, dtype=np.int64)
        weight[edges.before[behind]] = edges.after[behind]
        self.weight: list[int] = weight.tolist()  # by its I
        self.microbatch: list[int] = actions.microbatch.tolist()
        units = (kind == Kind.F) & (rank == 0) & (actions.microbatch == 0)
        self.banks = [RankBank([int(units.sum())] * sum(sizes)) for _ in range(p)]
        self.bank = [self.banks[place] for place in self.tasks.home]  # by task
        self.lists = [self.ready[3 * place : 3 * place + 3] for place in range(p)]
        self.forward_was_last = [False] * p

    def chosen(self, resource: int, now: int) -> int | None:
        """Forward and backward in turn where both can start, else what can, and last of all W."""
        del now
        forwards, backwards, weights = self.lists[resource]
        was_last = self.forward_was_last
        if forwards and not (backwards and was_last[resource]):
            # Slices that wait for W alone have their places beside the bank.
            self.limit[resource] = room = self.most - len(weights)
            if self.banks[resource].load < room:
                entry, _ = self.first_fitting(3 * resource)
                if entry is not None:
                    was_last[resource] = True
                    return entry[1]
        if backwards:
            was_last[resource] = False
            return heappop(backwards)[1]
        return heappop(weights)[1] if weights else None

    def fits(self, task: int) -> bool:
        """Whether the bank of its rank allows a forward."""
        room = self.limit[self.tasks.home[task]]
        return self.bank[task].allows(self.microbatch[task], 1, 1, room)

    def begun(self, task: int, end: int) -> None:
        """A forward takes a unit; W's stand in line as their I's ran."""
        which = self.which[task]
        if which == FORWARDS:
            self.bank[task].take(self.microbatch[task], 1, 1)
        elif self.is_split and which == BACKWARDS:
            self.priority[self.weight[task]] = end

    def ended(self, task: int) -> None:
        """A backward gives its unit back, or leaves it to W."""
        if self.which[task] == BACKWARDS:
            self.bank[task].give(self.microbatch[task], 1)


def _priority(problem: Problem, sizes: list[int]) -> list[int]:
    """The places of forwards among forwards, and of backwards among backwards."""
    actions = problem.actions
    chunk = actions.stage // problem.num_ranks
    group = np.repeat(np.arange(len(sizes)), sizes)[actions.microbatch]
    is_forward = actions.kind == Kind.F
    way = np.where(is_forward, 1, -1)
    keys = way * actions.slice, actions.microbatch, way * chunk, np.where(is_forward, group, 0)
    place = np.empty(problem.num_tasks, dtype=np.int64)
    place[np.lexsort(keys)] = np.arange(problem.num_tasks)
    return list(place.tolist())
