"""Orders for many microbatches from one for fewer: periods inserted where the starts repeat.

A class is a kind of action on a stage in one direction, and j the number of a microbatch within its
direction; ``orders.periods`` says which starts repeat and what may be inserted. Only the order is
used; it is sorted by the new starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Ints
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.orders.periods import Band, bands, longest, with_periods
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward


def lengthened(
    short: Pipeline, schedule: Schedule, num_microbatches: int, period: int
) -> Program | None:
    """The order for more microbatches, ``period`` at a time in all directions together, or None.

    ``schedule`` is one of ``short``, a pipeline of one slice and whole W. Precondition: the number
    of microbatches exceeds that of ``short`` by a multiple of ``period``.

    Parameters
    ----------
    num_microbatches
        How many the result has, in all directions together.
    period
        Microbatches after which the order repeats, in all directions together.
    """
    program, problem = schedule.program, short.problem()
    directions = _rows(short, program)
    ends = schedule.start + problem.duration[problem.locate(program.actions)]
    band = _band(directions, schedule.start, ends, period // len(directions))
    if band is None:
        return None
    more = (num_microbatches - short.num_microbatches) // period
    first = (0, num_downward(num_microbatches))  # microbatch of each direction
    parts = []
    for rows, offset in zip(directions, first, strict=False):
        start = with_periods(schedule.start[rows], band, more)
        microbatch = np.broadcast_to(offset + np.arange(start.shape[1]), start.shape)
        source = np.broadcast_to(rows[:, :1], start.shape)  # a row of the same class
        parts.append((source.ravel(), microbatch.ravel(), start.ravel()))
    source, microbatch, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    rank = program.resource[source]
    order = np.lexsort((start, rank))
    kind, stage = program.actions.kind[source], program.actions.stage[source]
    return Program(
        actions=ActionTable.of(kind[order], stage[order], microbatch[order]), resource=rank[order]
    )


def _rows(short: Pipeline, program: Program) -> list[Ints]:
    """For each direction the row ``[c, j]`` of its j-th microbatch in class c."""
    actions = program.actions
    half = num_downward(short.num_microbatches) if short.is_bidirectional else None
    counts = [short.num_microbatches] if half is None else [half, short.num_microbatches - half]
    order = np.lexsort((actions.microbatch, actions.stage, actions.kind))
    is_upward = actions.microbatch[order] >= counts[0]
    parts = (order[~is_upward], order[is_upward])
    return [part.reshape(-1, count) for part, count in zip(parts, counts, strict=False)]


def _band(directions: Sequence[Ints], starts: Ints, ends: Ints, step: int) -> Band | None:
    """Where the starts of all directions repeat for long enough, at the pace of their middle."""
    length = directions[-1].shape[1]  # the upward direction may have one less
    table = np.concatenate([starts[rows[:, :length]] for rows in directions])
    if length <= step:
        return None
    gains = table[0, step:] - table[0, :-step]
    ticks = int(gains[len(gains) // 2])
    band = longest(band for band in bands(table, step) if band.ticks == ticks)
    if band is None:
        return None
    early = max(int(ends[rows[:, : band.first + step]].max()) for rows in directions)
    late = min(int(starts[rows[:, band.last - step :]].min()) for rows in directions)
    return band if early <= late else None
