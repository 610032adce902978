"""Bars: one per action and resource, and what to show when there are too many of them.

A bar lies on a *row* of the picture (a resource that is shown) from ``start`` to ``end`` (ticks,
end exclusive). An ``OVERLAP_F_B`` task becomes two bars of half height, its F above its B. Too many
bars are *thinned*: time is cut into cells, and each cell shows what its row did longest in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem

COLUMNS = ("row", "start", "end", "chunk", "lane")


class Lane(IntEnum):
    """Which part of its row's height a bar fills."""

    WHOLE = 0
    UPPER = 1
    LOWER = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars:
    """Columns of one length; ``actions`` names each bar, with stage ``NONE`` where bars are cells.

    ``row`` is a row of the picture, ``start`` and ``end`` are ticks, ``chunk`` is the position of
    the bar's stage among the stages of its rank.
    """

    row: Ints
    start: Ints
    end: Ints
    chunk: Ints
    lane: Ints
    actions: ActionTable

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints | Bools) -> Bars:
        """The chosen bars (indices or a mask)."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Bars(**columns, actions=self.actions.take(rows))

    @classmethod
    def concatenate(cls, parts: Sequence[Bars]) -> Bars:
        """The bars of all parts."""
        columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in COLUMNS}
        return cls(**columns, actions=ActionTable.concatenate([part.actions for part in parts]))

    def by_kind(self) -> Iterator[tuple[Kind, int, Bars]]:
        """(kind, chunk, its bars) for each kind and chunk, in order."""
        num_chunks = int(self.chunk.max(initial=0)) + 1
        sort = self.actions.kind * num_chunks + self.chunk
        for which in np.unique(sort).tolist():
            kind, chunk = divmod(which, num_chunks)
            yield Kind(kind), chunk, self.take(np.flatnonzero(sort == which))

    def numbers(self) -> list[str]:
        """What stands inside each bar: the microbatch, its slice ``j.k`` and its part ``j#n``."""
        actions, sliced = self.actions, self.actions.is_sliced
        columns = (actions.microbatch, actions.slice, actions.part)
        return [
            "" if j == NONE else str(j) + f".{k}" * sliced + f"#{part}" * (part != NONE)
            for j, k, part in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def in_window(self, window: tuple[int, int]) -> Bools:
        """Mask of the bars that show between the two ticks."""
        first, last = window
        return (self.start < last) & ((self.end > first) | (self.start >= first))


def bars_of(problem: Problem, task: Ints, resource: Ints, start: Ints) -> Bars:
    """A bar per row (task, resource, start in ticks); ``row`` is the resource."""
    return Bars(
        row=resource,
        start=start,
        end=start + problem.duration[task],
        chunk=_chunks(problem, task, resource),
        lane=np.full(len(task), int(Lane.WHOLE)),
        actions=problem.actions.take(task),
    )


def _chunks(problem: Problem, task: Ints, resource: Ints) -> Ints:
    """The position of each bar's stage among the stages of its rank; 0 on links and engines."""
    stages, occupancy = problem.actions.stage, problem.occupancy
    width = int(stages.max(initial=0)) + 1
    held = np.unique(occupancy.resource * width + stages[occupancy.task])
    chunk = np.searchsorted(held, resource * width + stages[task])
    chunk -= np.searchsorted(held, resource * width)
    return np.where(resource < problem.num_ranks, chunk, 0).astype(np.int64)


def split_overlaps(bars: Bars) -> Bars:
    """Each ``OVERLAP_F_B`` bar as an F in the upper lane and its B in the lower."""
    pair = bars.actions.is_kind(Kind.OVERLAP_F_B)
    if not pair.any():
        return bars
    alone, pairs = bars.take(~pair), bars.take(pair)
    actions, ones = pairs.actions, np.ones(len(pairs), dtype=np.int64)
    forward = ActionTable.of(int(Kind.F), actions.stage, actions.microbatch, actions.slice)
    backward = ActionTable.of(
        int(Kind.B), actions.partner_stage, actions.partner_microbatch, actions.slice
    )
    upper = replace(pairs, lane=ones * Lane.UPPER, actions=forward)
    chunk = _partner_chunks(bars, pairs)
    lower = replace(pairs, lane=ones * Lane.LOWER, actions=backward, chunk=chunk)
    return Bars.concatenate([alone, upper, lower])


def _partner_chunks(bars: Bars, pairs: Bars) -> Ints:
    """The chunk of each pair's B: that of its stage elsewhere on the row, else the pair's own."""
    homes = zip(bars.row.tolist(), bars.actions.stage.tolist(), strict=True)
    known = dict(zip(homes, bars.chunk.tolist(), strict=True))
    wanted = (pairs.row, pairs.actions.partner_stage, pairs.chunk)
    rows = zip(*(column.tolist() for column in wanted), strict=True)
    return np.array([known.get((row, stage), own) for row, stage, own in rows], dtype=np.int64)


def thin(bars: Bars, *, window: tuple[int, int], num_rows: int, cell_ticks: int) -> Bars:
    """Cells of ``cell_ticks`` in place of bars, with the kind and chunk that ran longest.

    A cell that was idle for longer than anything ran stays blank; ties go to what runs.
    Neighbouring cells of one kind and chunk form one bar.
    """
    first, last = window
    columns = -(-(last - first) // cell_ticks)
    num_chunks = int(bars.chunk.max(initial=0)) + 1
    sorts = len(Kind) * num_chunks + 1  # the last sort is idle
    begin = np.clip(bars.start, first, last) - first
    end = np.clip(bars.end, first, last) - first
    low, high = begin // cell_ticks, -(-end // cell_ticks)
    count = np.maximum(high - low, 0)
    bar = np.repeat(np.arange(len(bars)), count)
    cell = np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count) + low[bar]
    edge = cell * cell_ticks
    share = np.minimum(end[bar], edge + cell_ticks) - np.maximum(begin[bar], edge)
    sort = bars.actions.kind * num_chunks + bars.chunk
    ran = np.zeros(num_rows * columns * sorts, dtype=np.int64)
    np.add.at(ran, (bars.row[bar] * columns + cell) * sorts + sort[bar], share)
    table = ran.reshape(num_rows, columns, sorts)
    width = np.minimum(cell_ticks, last - first - np.arange(columns) * cell_ticks)
    table[:, :, -1] = width - table.sum(axis=2)
    return _runs(table.argmax(axis=2), first, last, cell_ticks, num_chunks)


def _runs(winner: Ints, first: int, last: int, cell_ticks: int, num_chunks: int) -> Bars:
    """Bars from the sort that won each cell, shape (rows, columns)."""
    changes = np.ones(winner.shape, dtype=bool)
    changes[:, 1:] = winner[:, 1:] != winner[:, :-1]
    row, column = np.nonzero(changes)
    columns = winner.shape[1]
    following = np.append(row[1:] * columns + column[1:], winner.size) - row * columns
    sort = winner[row, column]
    busy = sort < len(Kind) * num_chunks
    row, column, following, sort = row[busy], column[busy], following[busy], sort[busy]
    return Bars(
        row=row,
        start=first + column * cell_ticks,
        end=np.minimum(first + following * cell_ticks, last),
        chunk=sort % num_chunks,
        lane=np.full(len(row), int(Lane.WHOLE)),
        actions=ActionTable.of(sort // num_chunks, NONE, np.full(len(row), NONE)),
    )
