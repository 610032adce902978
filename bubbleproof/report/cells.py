"""Cells in place of bars that are too many or too narrow to be drawn one by one.

Time is cut into cells of equal length, and a cell of a row has one colour. Which one is chosen so
that the rule of every picture holds: *the area of a colour equals its share of time*. From left to
right each sort (a kind of action on a chunk, or idle) is owed what it ran; a cell shows the sort
that is owed most and takes its length off that debt. So a colour's area on a row differs from its
time by a few cells at most, however many cells there are, and a sort that never runs longest in any
cell is seen all the same (Bresenham's line, for many colours). A bar of half height counts half.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.report.bars import BarLane, Bars
from bubbleproof.theory.model.actions import NONE, ActionTable, Ints

_WHOLE, _HALF = 2, 1  # the height of a bar, in halves


def cells_of(bars: Bars, *, window: tuple[int, int], num_rows: int, cell_ticks: int) -> Bars:
    """Cells of ``cell_ticks`` ticks in place of ``bars``, from the first tick of ``window``.

    Neighbouring cells of one kind and chunk form one bar; idle cells are none.
    """
    first, last = window
    columns = -(-(last - first) // cell_ticks)
    num_chunks = int(bars.chunk.max(initial=0)) + 1
    sorts, sort = np.unique(bars.actions.kind * num_chunks + bars.chunk, return_inverse=True)
    ran = _ran(bars, sort, window, (num_rows, columns, len(sorts) + 1), cell_ticks)
    width = _WHOLE * np.minimum(cell_ticks, last - first - np.arange(columns) * cell_ticks)
    ran[:, :, -1] = np.maximum(width - ran.sum(axis=2), 0)  # the last sort is idle
    row, start, end, shown = _runs(_owed_most(ran, width), first, last, cell_ticks, len(sorts))
    kind, chunk = np.divmod(sorts[shown], num_chunks)
    return Bars(
        row=row,
        start=start,
        end=end,
        chunk=chunk,
        lane=np.full(len(row), int(BarLane.WHOLE)),
        task=np.full(len(row), NONE),
        actions=ActionTable.of(kind, NONE, np.full(len(row), NONE)),
    )


def _ran(
    bars: Bars,
    sort: Ints,
    window: tuple[int, int],
    shape: tuple[int, int, int],
    cell_ticks: int,
) -> Ints:
    """How long each sort ran in each cell of each row, in ticks of half a row's height."""
    first, last = window
    _, columns, sorts = shape
    begin = np.clip(bars.start, first, last) - first
    end = np.clip(bars.end, first, last) - first
    low, high = begin // cell_ticks, -(-end // cell_ticks)
    count = np.maximum(high - low, 0)
    bar = np.repeat(np.arange(len(bars)), count)
    cell = np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count) + low[bar]
    edge = cell * cell_ticks
    share = np.minimum(end[bar], edge + cell_ticks) - np.maximum(begin[bar], edge)
    height = np.where(bars.lane == BarLane.WHOLE, _WHOLE, _HALF)[bar]
    ran = np.zeros(np.prod(shape), dtype=np.int64)
    np.add.at(ran, (bars.row[bar] * columns + cell) * sorts + sort[bar], share * height)
    return ran.reshape(shape)


def _owed_most(ran: Ints, width: Ints) -> Ints:
    """The sort of each cell, shape (rows, columns): the one that is owed most there."""
    rows, columns, sorts = ran.shape
    debt = np.zeros((rows, sorts), dtype=np.int64)
    shown = np.zeros((rows, columns), dtype=np.int64)
    every = np.arange(rows)
    for column in range(columns):
        debt += ran[:, column]
        shown[:, column] = debt.argmax(axis=1)
        debt[every, shown[:, column]] -= width[column]
    return shown


def _runs(
    shown: Ints, first: int, last: int, cell_ticks: int, idle: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Row, start, end and sort of each run of one sort but ``idle``, of cells (rows, columns)."""
    changes = np.ones(shown.shape, dtype=bool)
    changes[:, 1:] = shown[:, 1:] != shown[:, :-1]
    row, column = np.nonzero(changes)
    columns = shown.shape[1]
    following = np.append(row[1:] * columns + column[1:], shown.size) - row * columns
    busy = shown[row, column] < idle
    row, column, following = row[busy], column[busy], following[busy]
    start = first + column * cell_ticks
    end = np.minimum(first + following * cell_ticks, last)
    return row, start, end, shown[row, column]
