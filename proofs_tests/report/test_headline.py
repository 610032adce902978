"""A schedule in one line: against 1F1B, against its bound, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.report.headline import headline
from bubbleproof.theory.families import member
from bubbleproof.theory.pipelines.programs.standstill import Standstill


def test_gpipe_is_as_long_as_1f1b_and_above_no_bound() -> None:
    """(8 + 3) x 3 = 33 ticks, 3/11 idle; a whole backward leaves nothing to gain."""
    drawn = member("gpipe", p=4, m=8)
    line = headline(drawn.problem, drawn.schedule, pipeline=drawn.pipeline)
    assert line == "33 ticks, 27.3 % idle; as long as 1F1B; at its bound: no schedule is shorter."


def test_what_is_longer_says_by_how_much() -> None:
    """All starts doubled: the last B begins at 62 of 31 and ends at 64; 31 ticks above 33."""
    drawn = member("1f1b", p=4, m=8)
    slow = replace(drawn.schedule, start=drawn.schedule.start * 2)
    line = headline(drawn.problem, slow, pipeline=drawn.pipeline)
    # work 4 x 8 x 3 = 96 of 4 x 64: 62.5 % idle; 31/33 = 93.9 %
    assert line == "64 ticks, 62.5 % idle; 93.9 % above 1F1B; 31 ticks above its bound."


def test_without_a_pipeline_1f1b_is_not_named() -> None:
    drawn = member("1f1b", p=4, m=8)
    assert "1F1B" not in headline(drawn.problem, drawn.schedule)


def test_a_standstill_is_all_that_is_told() -> None:
    drawn = member("1f1b", p=2, m=2)
    absent = np.zeros(drawn.problem.num_tasks, dtype=bool)
    stopped = Standstill(
        problem=drawn.problem, schedule=drawn.schedule, at=7, waits=(), absent=absent
    )
    assert headline(drawn.problem, drawn.schedule, stopped=stopped) == "Stops after 7 ticks."
