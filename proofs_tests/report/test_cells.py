"""Cells: on every row each sort has the area of its time, against a count of every tick."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.report.bars import BarLane, Bars
from bubbleproof.report.timeline import cells_of
from bubbleproof.theory.model.actions import NONE, ActionTable, Ints, Kind

IDLE = len(Kind)


def bars(row: Ints, start: Ints, end: Ints, kind: Ints, lane: Ints | None = None) -> Bars:
    zero = np.zeros(len(row), dtype=np.int64)
    actions = ActionTable.of(kind, 0, np.arange(len(row)))
    return Bars(
        row=row,
        start=start,
        end=end,
        chunk=zero,
        lane=zero if lane is None else lane,
        task=np.arange(len(row)),
        actions=actions,
    )


def painted(found: Bars, num_rows: int, total: int) -> Ints:
    """The sort of each tick, shape (rows, ticks); no two cells overlap."""
    ticks = np.full((num_rows, total), IDLE)
    for row, start, end, kind in zip(
        found.row, found.start, found.end, found.actions.kind, strict=True
    ):
        assert (ticks[row, start:end] == IDLE).all()
        ticks[row, start:end] = kind
    return ticks


@given(data=st.data())
def test_each_sort_has_the_area_of_its_time_up_to_any_tick(data: st.DataObject) -> None:
    cell = data.draw(st.integers(1, 9))
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=40))
    pauses = data.draw(st.lists(st.integers(0, 5), min_size=len(lengths), max_size=len(lengths)))
    kinds = data.draw(
        st.lists(st.sampled_from([0, 1, 3]), min_size=len(lengths), max_size=len(lengths))
    )
    end = np.cumsum(np.array(lengths) + np.array(pauses))
    start = end - np.array(lengths)
    row, total = np.zeros(len(end), dtype=np.int64), max(int(end[-1]), 1)
    given_bars = bars(row, start, end, np.array(kinds))
    found = cells_of(given_bars, window=(0, total), num_rows=1, cell_ticks=cell)
    assert (found.actions.stage == NONE).all()
    ran, drawn = painted(given_bars, 1, total)[0], painted(found, 1, total)[0]
    for sort in {*kinds, IDLE}:
        owed = np.cumsum((ran == sort).astype(int) - (drawn == sort).astype(int))
        # of four sorts none is ever owed, or has had in advance, more than two cells
        assert np.abs(owed).max() <= 2 * cell
    if cell == 1:
        assert (ran == drawn).all()


def test_a_sort_that_never_runs_longest_is_seen() -> None:
    """W takes 1 of every 4 ticks, F the rest: of 100 cells of 4 ticks 25 are W's."""
    start = np.arange(0, 400, 2)
    kind = np.where(np.arange(200) % 2 == 0, int(Kind.F), int(Kind.W))
    length = np.where(kind == int(Kind.F), 3, 1)
    end = np.cumsum(length)
    start = end - length
    found = cells_of(
        bars(np.zeros(200, dtype=np.int64), start, end, kind),
        window=(0, 400),
        num_rows=1,
        cell_ticks=4,
    )
    drawn = painted(found, 1, 400)[0]
    assert ((drawn == int(Kind.W)).sum(), (drawn == int(Kind.F)).sum()) == (100, 300)


def test_halves_of_a_row_count_half() -> None:
    """F above B for 8 ticks: half of the row's area each, in cells of 2 ticks."""
    zero = np.zeros(2, dtype=np.int64)
    kinds, lanes = np.array([Kind.F, Kind.B]), np.array([BarLane.UPPER, BarLane.LOWER])
    both = bars(zero, zero, zero + 8, kinds, lanes)
    drawn = painted(cells_of(both, window=(0, 8), num_rows=1, cell_ticks=2), 1, 8)[0]
    assert ((drawn == int(Kind.F)).sum(), (drawn == int(Kind.B)).sum()) == (4, 4)
