"""The terminal grid against grids written by hand."""

from __future__ import annotations

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


def test_uneven_times_are_rounded_and_it_says_so() -> None:
    uneven = member("1f1b", p=2, m=2, tF=101, tB=203)
    lines = grid(uneven.problem, uneven.schedule).splitlines()
    assert lines[-2:] == ["(a column is 101 ticks)", "(starts and ends are rounded to columns)"]
    assert lines[1].replace("-", "").split()[2:] == ["F0", "F1", ".", ".", "B0", ".", "B1"]


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
    lines = grid(small().problem, small().schedule, max_columns=4, max_lines=1).splitlines()
    assert lines == [
        "time    0  1  2  3",
        "rank 0  F0 F1 .  .",
        "(cut after 4 of 9 columns)",
        "(cut after 1 of 2 lines)",
    ]


def test_a_window_begins_there() -> None:
    lines = grid(small().problem, small().schedule, window=(4, 7)).splitlines()
    assert lines == ["time    4  5  6", "rank 0  B0--- .", "rank 1  F1 B1---"]
    with pytest.raises(ValueError, match="a window must end after it starts, got 7 to 4"):
        grid(small().problem, small().schedule, window=(7, 4))


@pytest.mark.parametrize("width", [20, 40, 79, 200])
def test_a_grid_keeps_to_a_width(width: int) -> None:
    drawn = member("1f1b", p=4, m=8)  # 33 columns of 3 characters beside "rank 0  ": 107
    lines = grid(drawn.problem, drawn.schedule, width=width).splitlines()
    assert max(map(len, (line for line in lines if not line.startswith("(")))) <= width
    is_cut = any("cut after" in line for line in lines)
    assert is_cut == (width < 107)
    if is_cut:  # no room for one more column
        cut = int(lines[-1].split()[2])
        assert 8 + 3 * (cut + 1) > width
