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

A forward starts only if afterwards every microbatch i can still be completed once its predecessors
are: what the rank holds of i and later ones, plus the forwards that i still lacks on the rank, is
at most ``limit``. That holds at first because a sample needs v*s units, and every start keeps it; a
forward of the oldest microbatch changes none of these sums, so it never lacks room, and no limit of
v*s or more can deadlock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heappush

import numpy as np

from bubbleproof.theory.families.base import program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

Job = tuple[int, int, int]  # (microbatch, slice, stage)
Ready = tuple[tuple[int, ...], Job]  # (priority, least first; job)


def slice_orders(pipeline: Pipeline, limit: int) -> Program:
    """The orders for a pipeline in loop placement. Precondition: ``limit`` >= v*s."""
    return _orders(
        pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks, pipeline.num_slices,
        is_split=pipeline.split_backward is True, limit=limit,
    )  # fmt: skip


@lru_cache(maxsize=32)  # one shape is often wanted with several durations; 65536 tasks are 3 MB
def _orders(p: int, m: int, v: int, s: int, *, is_split: bool, limit: int) -> Program:
    group = max(1, min(p // s, limit // (v * s)))
    shared, plain = (group_sizes(ring, m, s, group) for ring in (p, 0))
    runs = [plain, shared] if is_split and shared != plain else [shared]
    # Where W fills the waits, sharing pays in some shapes only: the fewer ticks.
    found = (_ListScheduler(p, v, s, sizes, is_split, limit).run() for sizes in runs)
    return min(found, key=lambda run: run[1])[0]


def group_sizes(p: int, m: int, s: int, group: int) -> list[int]:
    """How many microbatches pass the chunks together: full groups, then what is left of m.

    A group needs p slots from one chunk to the next and brings one per slice; the next group fills
    the rest. Behind the last group nothing comes: where its slices fill less than half of the ring,
    it and the one before share their microbatches evenly, the smaller share first. (Two groups of
    2 and 1 stay as they are: shared, they wait longer for backwards of 2 ticks.)

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


@dataclass(slots=True, kw_only=True)
class _Rank:
    """What a rank can start, what it holds, and what it has done.

    ``held[j]`` counts the slices of microbatch j after F and before B or I, ``lacking[j]`` its
    forwards to come; the slices that wait for W alone are in ``weights``. ``oldest`` is the first
    microbatch with any of the two.
    """

    held: list[int]
    lacking: list[int]
    forwards: list[Ready] = field(default_factory=list)
    backwards: list[Ready] = field(default_factory=list)
    weights: deque[Job] = field(default_factory=deque)
    done: list[tuple[int, int, int, int]] = field(default_factory=list)
    in_flight: int = 0
    oldest: int = 0
    forward_was_last: bool = False

    def is_safe(self, microbatch: int, limit: int) -> bool:
        """Whether every microbatch can still be completed in turn once this forward has started."""
        load = self.in_flight + 1
        while self.oldest < microbatch and not self.held[self.oldest] + self.lacking[self.oldest]:
            self.oldest += 1
        for j in range(self.oldest, len(self.held)):
            started = j == microbatch
            if load + self.lacking[j] - started > limit:
                return False
            load -= self.held[j] + started
            if not load:
                return True
        return True

    def next_forward(self, limit: int) -> Ready | None:
        """The first ready forward that is safe."""
        if not self.forwards or self.in_flight >= limit:
            return None
        if self.is_safe(self.forwards[0][1][0], limit):
            return self.forwards[0]
        return next((r for r in sorted(self.forwards)[1:] if self.is_safe(r[1][0], limit)), None)

    def start_forward(self, ready: Ready) -> Job:
        """Take a forward out of the queue and count it."""
        if ready is self.forwards[0]:
            heappop(self.forwards)
        else:
            self.forwards.remove(ready)
            heapify(self.forwards)
        microbatch = ready[1][0]
        self.in_flight += 1
        self.held[microbatch] += 1
        self.lacking[microbatch] -= 1
        self.forward_was_last = True
        return ready[1]


class _ListScheduler:
    """Counts down what each job waits for, tick by tick."""

    def __init__(
        self, p: int, v: int, s: int, sizes: list[int], is_split: bool, limit: int
    ) -> None:
        self.p, self.v, self.s, self.is_split, self.limit = p, v, s, is_split, limit
        m, stages = sum(sizes), p * v
        self.group = np.repeat(np.arange(len(sizes)), sizes).tolist()
        slice_, stage = np.indices((m, self.s, stages))[1:]
        forward = (slice_ > 0).astype(int) + (stage > 0)
        backward = 1 + (slice_ < self.s - 1).astype(int) + (stage < stages - 1)
        self.waits_forward, self.waits_backward = forward.tolist(), backward.tolist()
        per_rank = self.v * self.s
        self.ranks = [_Rank(held=[0] * m, lacking=[per_rank] * m) for _ in range(self.p)]
        self.left = m * self.s * stages * (3 if self.is_split else 2)
        for microbatch in range(m):
            self._offer_forward((microbatch, 0, 0))

    def run(self) -> tuple[Program, int]:
        """Tick after tick until nothing is left: the orders, and how many ticks they took."""
        ticks = 0
        while self.left:
            ticks += 1
            started = [self._start(rank) for rank in self.ranks]
            for rank, work in zip(self.ranks, started, strict=True):
                if work is not None:
                    self._finish(rank, *work)
        columns = [np.array(rank.done, dtype=np.int64).T for rank in self.ranks]
        return program_of_ranks([(c[0], c[1], c[2], c[3]) for c in columns]), ticks

    def _start(self, rank: _Rank) -> tuple[Kind, Job] | None:
        """Choose what the rank does in this tick, or nothing."""
        if rank.backwards and rank.forward_was_last:
            return self._start_backward(rank)
        forward = rank.next_forward(self.limit - len(rank.weights))
        if forward is not None:
            return Kind.F, rank.start_forward(forward)
        if rank.backwards:
            return self._start_backward(rank)
        return (Kind.W, rank.weights.popleft()) if rank.weights else None

    def _start_backward(self, rank: _Rank) -> tuple[Kind, Job]:
        rank.forward_was_last = False
        return Kind.I if self.is_split else Kind.B, heappop(rank.backwards)[1]

    def _finish(self, rank: _Rank, kind: Kind, job: Job) -> None:
        """Record the action and offer what it was the last input of."""
        microbatch, slice_, stage = job
        rank.done.append((kind, stage, microbatch, slice_))
        self.left -= 1
        if kind is Kind.F:
            self._forward_input(microbatch, slice_ + 1, stage)
            self._forward_input(microbatch, slice_, stage + 1)
            self._backward_input(microbatch, slice_, stage)
        elif kind is not Kind.W:
            rank.in_flight -= 1
            rank.held[microbatch] -= 1
            if kind is Kind.I:
                rank.weights.append(job)
            self._backward_input(microbatch, slice_ - 1, stage)
            self._backward_input(microbatch, slice_, stage - 1)

    def _forward_input(self, microbatch: int, slice_: int, stage: int) -> None:
        if slice_ < self.s and stage < self.p * self.v:
            self.waits_forward[microbatch][slice_][stage] -= 1
            if not self.waits_forward[microbatch][slice_][stage]:
                self._offer_forward((microbatch, slice_, stage))

    def _backward_input(self, microbatch: int, slice_: int, stage: int) -> None:
        if slice_ >= 0 and stage >= 0:
            self.waits_backward[microbatch][slice_][stage] -= 1
            if not self.waits_backward[microbatch][slice_][stage]:
                chunk = stage // self.p
                ready = ((-chunk, microbatch, -slice_), (microbatch, slice_, stage))
                heappush(self.ranks[stage % self.p].backwards, ready)

    def _offer_forward(self, job: Job) -> None:
        microbatch, slice_, stage = job
        priority = (self.group[microbatch], stage // self.p, microbatch, slice_)
        heappush(self.ranks[stage % self.p].forwards, (priority, job))
