"""Pictures of schedules, letter by letter; what their columns are is worked out beside each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from bubbleproof.verify.explain import grid
from bubbleproof.verify.explain.grid import MAX_ROWS, step_grid, time_grid


def one_rank(count: int, ticks: int, begin: int = 0) -> tuple[Problem, Schedule]:
    """``count`` forwards one after the other; the backwards are not in the schedule."""
    problem = Pipeline(num_ranks=1, num_microbatches=count, forward=ticks).problem()
    program = Program.from_orders([[f"0F{j}" for j in range(count)]])
    return problem, Schedule(program=program, start=begin + ticks * np.arange(count))


def drawn(problem: Problem, schedule: Schedule, *marked: int) -> list[str]:
    task = problem.locate(schedule.program.actions)
    return time_grid(problem, schedule, task, np.array(marked)).split("\n")


def test_a_tick_is_a_column_where_tasks_take_eight() -> None:
    """0F5 runs from 40 to 48. The window is ten tasks wide, (80 - 8) / 2 = 36 ticks on either side:
    4 to 84. Of 0F0 the last 4 ticks are left; 0F10 starts at 80, 0F11 at 88."""
    assert drawn(*one_rank(12, 8), 5) == [
        "    time  4 .. 84 ticks",
        "  rank 0  |0F0|0F1----|0F2----|0F3----|0F4----[0F5]   |0F6----|0F7----|0F8----|0F9----"
        "|0F10---",
        " " * 10 + " " * 36 + "^   ^",  # 40 - 4
    ]


def test_two_ticks_share_a_column_where_tasks_take_sixteen() -> None:
    """0F10 runs from 160 to 176, the window from 160 - 72 to 176 + 72; 0F5 ends at 96."""
    assert drawn(*one_rank(14, 16), 10) == [
        "    time  88 .. 248 ticks",
        "  rank 0  |0F5|0F6----|0F7----|0F8----|0F9----[0F10]  |0F11---|0F12---|0F13---",
        " " * 10 + " " * 36 + "^    ^",  # (160 - 88) / 2
    ]


def test_a_tick_is_three_columns_where_tasks_take_two() -> None:
    """6 columns for a label, so 3 for a tick; 9 ticks on either side, from 20 on, to 20 + 2 + 9."""
    assert drawn(*one_rank(9, 2, begin=20), 0) == [
        "    time  20 .. 31 ticks",
        "  rank 0  [0F0] |0F1--|0F2--|0F3--|0F4--|0F5--",
        " " * 10 + "^   ^",
    ]


def test_a_mark_covers_its_neighbour_and_other_labels_are_cut() -> None:
    """Four columns a task; the window is 18 ticks on either side of 40 and 44. 0F5 has its last 2,
    [0F10] takes 6, so that of 0F11 only the end is left, and the 1 of its number is cut."""
    assert drawn(*one_rank(20, 4), 10) == [
        "    time  22 .. 62 ticks",
        "  rank 0  |0|0F6|0F7|0F8|0F9[0F10]F1|0F1|0F1|0F1|0F1",
        " " * 10 + " " * 18 + "^    ^",
    ]


def test_two_marks_far_apart_are_in_one_window() -> None:
    """4 tasks on either side where the marks are far apart: 16 - 32 < 0 and 64 + 32 = 96."""
    lines = drawn(*one_rank(14, 8), 2, 7)
    assert lines[0] == "    time  0 .. 96 ticks"
    assert lines[1].count("[") == 2
    assert lines[2] == " " * 10 + " " * 16 + "^   ^" + " " * 35 + "^   ^"
    assert lines[1].endswith("|0F11---")


def test_a_window_is_a_hundred_columns_wide() -> None:
    """From 0 to 96 + 32 it would be 128 ticks; it is cut at 100, 0F12 starts at 96."""
    lines = drawn(*one_rank(20, 8), 1, 11)
    assert lines[0] == "    time  0 .. 100 ticks"
    assert lines[1].endswith("[0F11]  |0F12---")


def ranks(count: int) -> tuple[Problem, Schedule]:
    """One forward of 8 ticks on each rank, all at once."""
    problem = Pipeline(num_ranks=count, num_microbatches=1, forward=8).problem()
    program = Program.from_orders([[f"{r}F0"] for r in range(count)])
    return problem, Schedule(program=program, start=np.zeros(count, dtype=np.int64))


@pytest.mark.parametrize(
    ("marked", "shown"),
    [((19,), range(4, 20)), ((0,), range(16)), ((10,), range(2, 18)), ((4, 15), None)],
)
def test_the_nearest_ranks_are_shown(marked: tuple[int, ...], shown: range | None) -> None:
    lines = drawn(*ranks(20), *marked)
    named = [int(line.split()[1]) for line in lines if line.strip().startswith("rank")]
    # 12 ranks lie within 3 of 4 or 15; of those 4 away (0, 8, 11, 19) there is room for two.
    assert named == ([*range(9), *range(12, 19)] if shown is None else list(shown))
    assert len(named) == MAX_ROWS
    assert len(lines) == 1 + MAX_ROWS + len(marked)  # a line below each mark, below no other


def test_all_marked_ranks_are_shown_and_then_no_other() -> None:
    lines = drawn(*ranks(20), *range(17))
    assert sum(line.strip().startswith("rank") for line in lines) == 17


def test_a_picture_of_steps_shows_four_on_either_side() -> None:
    problem, schedule = one_rank(12, 1)
    program = schedule.program
    assert step_grid(problem, program, np.array([6])) == (
        "  rank 0  ... 0F2  0F3  0F4  0F5  [0F6]  0F7  0F8  0F9  0F10 ..."
    )
    assert step_grid(problem, program, np.array([4])) == (
        "  rank 0  0F0  0F1  0F2  0F3  [0F4]  0F5  0F6  0F7  0F8 ..."
    )
    assert step_grid(problem, program, np.array([7, 8])) == (
        "  rank 0  ... 0F3  0F4  0F5  0F6  [0F7]  [0F8]  0F9  0F10  0F11"
    )


def test_a_mark_ends_where_the_page_ends() -> None:
    put: Callable[[list[str], int, int, str, bool], None] = grid._put
    cells = list(" " * 6)
    put(cells, 3, 4, "0F0", True)
    assert "".join(cells) == "   [0F"


def test_a_line_is_shortened_beyond_twice_the_width() -> None:
    short: Callable[[str], str] = grid._shortened
    text = "".join(chr(97 + i % 26) for i in range(2 * grid.WIDTH))
    assert short(text) == text
    assert short(f"{text}!") == f"{text[: grid.WIDTH]} ... {text[1 - grid.WIDTH :]}!"


def test_a_picture_of_wide_ticks_is_cut_after_its_width() -> None:
    # Actions of 100 ticks are drawn 8 columns wide: ceil(100 / 8) = 13 ticks a column. The marked
    # 0B0 lasts 10000 from 50 on; 400 more are drawn after it, but a page ends 100 columns on, at
    # tick 1300. 0F0 stands in columns 0 to 7, 0B0 from column 50 // 13 = 3 on to the page's end.
    pipeline = Pipeline(num_ranks=1, num_microbatches=3, forward=100, backward=100)
    problem = pipeline.problem()
    duration = problem.duration.copy()
    duration[problem.task("0B0")] = 10_000
    program = Program.from_orders([["0F0", "0B0", "0F1", "0B1", "0F2", "0B2"]])
    starts = np.array([0, 50, 10_050, 10_150, 10_250, 10_350])
    made = Schedule(program=program, start=starts)
    verdict = check(replace(problem, duration=duration), made)
    picture = verdict.violations[0].picture.splitlines()
    assert picture[0] == "    time  0 .. 1300 ticks"
    assert picture[1] == "  rank 0  [0F[0B0]"
    assert max(map(len, picture)) <= 10 + 120


def test_a_picture_of_steps_is_shortened_in_its_middle() -> None:
    # From 4 rows before the first mark (row 5) to 4 after the last (row 60).
    order = [f"0{kind}{j}" for j in range(40) for kind in "FB"]
    problem = Pipeline(num_ranks=1, num_microbatches=40).problem()
    shown = [f"[{order[row]}]" if row in (5, 60) else order[row] for row in range(1, 65)]
    text = "... " + "  ".join(shown) + " ..."
    drawn = step_grid(problem, Program.from_orders([order]), np.array([5, 60]))
    assert drawn == f"  rank 0  {text[:100]} ... {text[-100:]}"
    short = step_grid(problem, Program.from_orders([order]), np.array([5]))
    assert short == "  rank 0  ... " + "  ".join(shown[:9]) + " ..."
