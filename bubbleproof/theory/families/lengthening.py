"""Orders for many microbatches from one for fewer: periods inserted where the starts repeat.

Symbols: an order of n microbatches per direction with starts S(X, j), X a class (kind, stage,
slice, direction) and j the number of a microbatch within its direction. The starts *repeat* from a
to b with step q when S(X, j + q) = S(X, j) + P for all X and a <= j < b. Then k more periods give

    S'(X, j) = S(X, j) for j < a + q        S'(X, j + iq) = S(X, j) + iP for a <= j < a + q, i <= k
    S'(X, j + kq) = S(X, j) + kP for j >= a + q.

Up to b + q the new starts are the old ones, from a + kq on they are the old ones moved by kP, and
between two consecutive ones of these views nothing else is near where every microbatch before
a + q ends before any from b on begins. So inputs, ranks and memory are kept for every k, and the
makespan grows by kP. Only the order is used; it is sorted by these starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Bools, Ints
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward


def lengthened(
    short: Pipeline, schedule: Schedule, num_microbatches: int, period: int
) -> Program | None:
    """The order for more microbatches, ``period`` at a time in all directions together, or None.

    ``schedule`` is one of ``short``, a pipeline of one slice and whole W. Precondition: the number
    of microbatches exceeds that of ``short`` by a multiple of ``period``.
    """
    rows = _Rows(short, schedule)
    step = period // (2 if short.is_bidirectional else 1)
    band = rows.band(step)
    if band is None:
        return None
    first, ticks = band
    more = (num_microbatches - short.num_microbatches) // period
    parts = list(rows.inserted(first, step, ticks, more))
    source, index, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    actions, rank = rows.program.actions, rows.program.resource[source]
    order = np.lexsort((start, rank))
    half = num_downward(num_microbatches) if short.is_bidirectional else 0
    microbatch = index + half * rows.is_upward[source]
    return Program(
        actions=ActionTable.of(
            actions.kind[source][order], actions.stage[source][order], microbatch[order]
        ),
        resource=rank[order],
    )


class _Rows:
    """The rows of a schedule: the microbatch's number in its direction, start and end."""

    def __init__(self, short: Pipeline, schedule: Schedule) -> None:
        problem, self.program, self.start = short.problem(), schedule.program, schedule.start
        microbatch = self.program.actions.microbatch
        half = num_downward(short.num_microbatches) if short.is_bidirectional else len(microbatch)
        self.is_upward: Bools = microbatch >= half
        self.index: Ints = microbatch - half * self.is_upward
        self.end: Ints = self.start + problem.duration[problem.locate(self.program.actions)]

    def band(self, step: int) -> tuple[int, int] | None:
        """(a, P) where the starts repeat for long enough, or None."""
        kind, stage = self.program.actions.kind, self.program.actions.stage
        order = np.lexsort((self.index, self.is_upward, stage, kind))
        sizes = np.bincount(self.index)
        length = int((sizes == sizes[0]).sum())  # the upward direction may have one less
        table = self.start[order][self.index[order] < length].reshape(-1, length)
        gains = table[:, step:] - table[:, :-step]
        if not gains.size:
            return None
        ticks = int(gains[0, gains.shape[1] // 2])
        first, last = _longest_run((gains == ticks).all(axis=0))
        early, late = self.index < first + step, self.index >= last
        is_long = first < last and self.end[early].max() <= self.start[late].min()
        return (first, ticks) if is_long else None

    def inserted(
        self, first: int, step: int, ticks: int, more: int
    ) -> Iterator[tuple[Ints, Ints, Ints]]:
        """(row, number of the microbatch, start) with ``more`` periods behind the band's first."""
        rows = np.flatnonzero(self.index < first + step)
        yield rows, self.index[rows], self.start[rows]
        rows = np.flatnonzero((self.index >= first) & (self.index < first + step))
        times = np.repeat(np.arange(1, more + 1), len(rows))
        rows = np.tile(rows, more)
        yield rows, self.index[rows] + times * step, self.start[rows] + times * ticks
        rows = np.flatnonzero(self.index >= first + step)
        yield rows, self.index[rows] + more * step, self.start[rows] + more * ticks


def _longest_run(flags: Bools) -> tuple[int, int]:
    """The longest run of true flags: its first place, and the place behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int64)))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest])
