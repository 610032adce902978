"""The picture's data: bars, gaps, clashes and memory against brute force over every tick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.report.bars import BarLane
from bubbleproof.report.memory_curves import MemoryCurve, thin_curve
from bubbleproof.report.timeline import Spans, timeline
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, Ints, Kind
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.report.small import BARS, GAPS, LOADS, small


def spans(found: Spans) -> set[tuple[int, int, int]]:
    return set(zip(found.row.tolist(), found.start.tolist(), found.end.tolist(), strict=True))


def load_at(curve: MemoryCurve, tick: int) -> int:
    return int(curve.load[np.flatnonzero(curve.time <= tick)[-1]])


def test_bars_and_gaps_of_the_worked_example() -> None:
    view = timeline(small().problem, small().schedule)
    bars = view.bars
    columns = (bars.actions.kind, bars.row, bars.start, bars.end)
    found = set(zip(*(column.tolist() for column in columns), strict=True))
    assert found == {(Kind[kind], *bar) for kind, rows in BARS.items() for bar in rows}
    assert spans(view.gaps) == GAPS
    assert len(view.clashes) == 0
    assert (view.rows, view.window, view.notes) == (("rank 0", "rank 1"), (0, 9), ())


def test_memory_of_the_worked_example() -> None:
    view = timeline(small().problem.with_capacity(1), small().schedule)
    for curve, loads in zip(view.memory, LOADS, strict=True):
        assert [load_at(curve, tick) for tick in range(9)] == loads
        assert (curve.time[0], curve.time[-1], curve.load[-1]) == (0, 9, 0)
    assert [(c.peak, c.peak_time, c.is_over) for c in view.memory] == [(2, 1, True), (1, 1, False)]


def test_memory_starts_at_the_base_load() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, activation=3, static=10, forward=2)
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders([["0F0", "0B0"]]))
    late = Schedule(program=schedule.program, start=schedule.start + 5)
    curve = timeline(problem, late, window=(0, 20)).memory[0]
    # F 5-7 takes 3 above the base of 10, B 7-9 gives them back
    assert [load_at(curve, tick) for tick in (0, 4, 5, 8, 9, 19)] == [10, 10, 13, 13, 10, 10]
    assert (curve.base, curve.peak, curve.peak_time) == (10, 13, 5)


@given(shifts=st.lists(st.integers(-3, 6), min_size=8, max_size=8), cut=st.booleans())
def test_gaps_and_clashes_agree_with_counting_every_tick(shifts: list[int], cut: bool) -> None:
    problem, base = small().problem, small().schedule
    moved = Schedule(program=base.program, start=base.start + np.array(shifts))
    view = timeline(problem, moved, window=(1, 7) if cut else None)
    first, last = view.window
    running = np.zeros((2, 40), dtype=np.int64)
    tasks = problem.locate(moved.program.actions)
    for row, start, task in zip(moved.program.resource, moved.start, tasks, strict=True):
        running[row, start + 10 : start + 10 + problem.duration[task]] += 1
    for wanted, found in ((running == 0, view.gaps), (running > 1, view.clashes)):
        marked = np.zeros_like(wanted)
        for row, start, end in spans(found):
            marked[row, start + 10 : end + 10] = True
        inside = slice(first + 10, last + 10)
        assert (marked[:, inside] == wanted[:, inside]).all()


def test_too_many_actions_are_thinned_and_the_picture_says_so() -> None:
    large = member("1f1b", p=4, m=3000)  # 4 x 3000 x 2 = 24,000 actions
    view = timeline(large.problem, large.schedule)
    assert view.cell_ticks == 2
    assert len(view.bars) <= 20_000
    # makespan (m + p - 1)(tF + tB) = 9,009 ticks in 20,000 / 4 columns: cells of 2 ticks
    assert view.notes[-1] == (
        "24,000 actions are too many to draw one by one: time is cut into cells of 2 ticks, "
        "coloured so that the area of a colour is its share of time."
    )
    # Rank 0's load rises and falls 3,000 times; its peak p = 4 is still in the thinned curve.
    assert view.memory[0].load.max() == 4
    assert view.notes[0].startswith("Memory shows the highest and lowest of every ")


def test_a_window_says_how_much_lies_outside() -> None:
    # Bars that reach into 4 to 6: 0B0 4-6, 1F1 4-5, 1B1 5-7
    view = timeline(small().problem, small().schedule, window=(4, 6))
    assert len(view.bars) == 3
    assert view.notes == ("Window 4 to 6 of 0 to 9 ticks: 3 of 8 bars lie in it.",)
    # 0B1 starts at 7 and 1B0 ends at 4: neither shows between 4 and 7
    assert len(timeline(small().problem, small().schedule, window=(4, 7)).bars) == 3
    assert view.measures.makespan == 9  # measures are those of the whole


def test_many_ranks_are_sampled_and_the_picture_says_so() -> None:
    wide = member("gpipe", p=100, m=1)
    view = timeline(wide.problem, wide.schedule, max_rows=30)
    # every 4th of 100 ranks is 25; the fullest store (rank 0) is among every 7th
    assert (len(view.rows), view.rows[1]) == (25, "rank 4")
    assert view.notes == (
        "25 of 100 ranks are drawn, every 4th.",
        "Memory of 15 of 100 stores, every 7th and the fullest.",
    )


def test_rows_that_are_no_task_are_counted() -> None:
    orders = [[*map(str, order)] for order in small().schedule.program.orders(2)]
    orders[0] += ["0F9", "0F0"]
    program = Program.from_orders(orders)
    start = np.insert(small().schedule.start, 4, [9, 9])
    view = timeline(small().problem, Schedule(program=program, start=start))
    assert len(view.bars) == 8
    assert view.notes == ("2 rows repeat an action or name none of the problem: not drawn.",)


def test_an_overlapped_pair_is_two_bars_of_half_height() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, overlaps=(((0, 1), (0, 0)),))
    problem = pipeline.problem()
    orders = [["0F0", "(0F1;0B0)OVERLAP_F_B", "0B1"]]
    view = timeline(problem, left_shift(problem, Program.from_orders(orders)))
    halves = view.bars.take(view.bars.lane != BarLane.WHOLE)
    # the pair takes 1 + 2 ticks after 0F0
    assert [str(a) for a in halves.actions] == ["0F1", "0B0"]
    assert halves.lane.tolist() == [BarLane.UPPER, BarLane.LOWER]
    assert (halves.start.tolist(), halves.end.tolist()) == ([1, 1], [4, 4])
    assert len(view.clashes) == 0


def test_chunks_count_the_stages_of_a_rank() -> None:
    wave = Pipeline(num_ranks=2, num_microbatches=1, num_chunks=2, placement="wave").problem()
    orders = [["0F0", "3F0", "3B0", "0B0"], ["1F0", "2F0", "2B0", "1B0"]]
    view = timeline(wave, left_shift(wave, Program.from_orders(orders)))
    chunk = dict(zip(map(str, view.bars.actions), view.bars.chunk.tolist(), strict=True))
    assert [chunk[a] for a in ("0F0", "3F0", "1F0", "2F0", "3B0")] == [0, 1, 0, 1, 1]
    assert view.num_chunks == 2


@given(loads=st.lists(st.integers(0, 50), min_size=2, max_size=200))
def test_a_thinned_curve_keeps_highs_lows_and_ends(loads: list[int]) -> None:
    time: Ints = np.arange(len(loads), dtype=np.int64)
    load = np.array(loads, dtype=np.int64)
    curve = MemoryCurve(
        name="x", time=time, load=load, base=0, capacity=None, peak=max(loads), peak_time=0
    )
    thinned = thin_curve(curve, max_steps=20)
    assert len(thinned.time) <= max(20 + 2 * thinned.step_size, 20)
    assert (thinned.load.max(), thinned.load.min()) == (max(loads), min(loads))
    assert (thinned.load[0], thinned.load[-1]) == (loads[0], loads[-1])
    assert (load[thinned.time] == thinned.load).all()


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="a window must end after it starts, got 5 to 5"):
        timeline(small().problem, small().schedule, window=(5, 5))


def test_an_empty_schedule_is_an_empty_picture() -> None:
    empty = Schedule(program=Program.from_orders([[], []]), start=np.zeros(0, dtype=np.int64))
    view = timeline(small().problem, empty)
    assert (len(view.bars), view.memory[0].peak) == (0, 0)
    assert Action.parse("0F0") not in list(view.bars.actions)
