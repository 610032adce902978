"""The terminal grid against grids written by hand."""

from __future__ import annotations

import re

import pytest

from bubbleproof.report.text import grid
from bubbleproof.theory.families import member
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.report.small import small


def test_the_worked_example() -> None:
    assert grid(small().problem, small().schedule).splitlines() == [
        "time    0  1  2  3  4  5  6  7  8",
        "rank 0  F0 F1 .  .  B0--- .  B1---",
        "rank 1  .  F0 B0--- F1 B1--- .  .",
    ]


def test_a_column_is_the_common_divisor_of_all_times() -> None:
    slow = member("1f1b", p=2, m=2, tF=20, tB=40)
    lines = grid(slow.problem, slow.schedule).splitlines()
    assert lines[1].split() == ["rank", "0", "F0", "F1", ".", ".", "B0---", ".", "B1---"]
    assert lines[-1] == "(a column is 20 ticks)"


def test_what_does_not_fit_is_drawn_to_scale() -> None:
    """(4 + 2 - 1)(101 + 203) = 1,520 ticks on 112 characters: 14 each, so F takes 7, B 14 or 15."""
    uneven = member("1f1b", p=2, m=4, tF=101, tB=203)
    ruler, *lines, note = grid(uneven.problem, uneven.schedule).splitlines()
    assert note == "(a column is 14 ticks)"
    assert ruler.split() == ["time", "0", "ticks", "200", "400", "600", "800", *(
        ["1,000", "1,200", "1,400"]
    )]  # fmt: skip
    for rank, line in enumerate(lines):
        chart = line.removeprefix(f"rank {rank}  ")
        drawn = re.findall(r"([FB]\d)(-*)", chart)
        assert [label for label, _ in drawn] == [
            str(action)[1:] for action in uneven.schedule.program.orders(2)[rank]
        ]
        assert all(
            abs((2 + len(dashes)) * 14 - (101 if label[0] == "F" else 203)) <= 14
            for label, dashes in drawn
        )
        assert len(chart) <= -(-1520 // 14)


@pytest.mark.parametrize("name", ["1f1b", "zb-v", "interleaved"])
def test_letters_take_their_share_of_time(name: str) -> None:
    """As wherever bars become cells: a kind on a chunk is a cell or two off on each rank."""
    drawn = member(name, p=4, m=64)
    ruler, *lines, note = grid(drawn.problem, drawn.schedule, width=80).splitlines()
    unit = int(re.findall(r"a column is (\d+) tick", note)[0])
    assert ruler.startswith("time    0 ticks")
    problem = drawn.problem
    for rank, line in enumerate(lines):
        chart = line.removeprefix(f"rank {rank}  ")
        assert len(line) <= 80
        for kind in "FBIW":
            task = [
                each
                for each, action in enumerate(problem.actions)
                if action.kind.name == kind and problem.rank_of_task[each] == rank
            ]
            ticks = int(problem.duration[task].sum())
            assert abs(chart.upper().count(kind) * unit - ticks) <= 3 * unit


def test_stages_and_slices_are_named_where_there_are_many() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, num_chunks=2, num_slices=2, backward=1)
    problem = pipeline.problem()
    orders = [["0F0", "0F0.1", "1F0", "1F0.1", "1B0.1", "1B0", "0B0.1", "0B0"]]
    lines = grid(problem, left_shift(problem, Program.from_orders(orders))).splitlines()
    assert lines[1] == "rank 0  0F0.0 0F0.1 1F0.0 1F0.1 1B0.1 1B0.0 0B0.1 0B0.0"


def test_an_overlapped_pair_shows_both() -> None:
    problem = Pipeline(num_ranks=1, num_microbatches=2, overlaps=(((0, 1), (0, 0)),)).problem()
    orders = [["0F0", "(0F1;0B0)OVERLAP_F_B", "0B1"]]
    lines = grid(problem, left_shift(problem, Program.from_orders(orders))).splitlines()
    assert [word.rstrip("-") for word in lines[1].split()] == ["rank", "0", "F0", "F1+B0", "B1"]


def test_what_is_cut_is_named() -> None:
    lines = grid(small().problem, small().schedule, max_lines=1).splitlines()
    assert lines[1].startswith("rank 0  F0 F1")
    assert lines[2:] == ["(cut after 1 of 2 lines)"]


def test_a_window_begins_there() -> None:
    lines = grid(small().problem, small().schedule, window=(4, 7)).splitlines()
    assert lines == ["time    4  5  6", "rank 0  B0--- .", "rank 1  F1 B1---"]
    with pytest.raises(ValueError, match="a window must end after it starts, got 7 to 4"):
        grid(small().problem, small().schedule, window=(7, 4))


@pytest.mark.parametrize("width", [30, 40, 79, 106, 107, 200])
def test_a_grid_keeps_to_a_width(width: int) -> None:
    drawn = member("1f1b", p=4, m=8)  # 33 columns of 3 characters beside "rank 0  ": 107
    lines = grid(drawn.problem, drawn.schedule, width=width).splitlines()
    assert max(map(len, (line for line in lines if not line.startswith("(")))) <= width
    assert (lines[1][:14] == "rank 0  F0 F1 ") == (width >= 107)


def test_times_are_in_a_unit_that_suits_them() -> None:
    """(9 + 2 - 1)(80,000 + 160,000) = 2,400,000 us."""
    slow = Pipeline(num_ranks=2, num_microbatches=9, forward=80_000, backward=160_123, unit="us")
    problem = slow.problem()
    drawn = left_shift(problem, member("1f1b", p=2, m=9).schedule.program)
    ruler = grid(problem, drawn, width=90).splitlines()[0]
    assert ruler.split() == ["time", "0", "s", "0.5", "1", "1.5", "2"]
