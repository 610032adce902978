"""What is measured of schedules that begin late, leave ranks idle, or have no rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Resource, Store
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.solvers.small import by_hand

SMALL = Pipeline(num_ranks=2, num_microbatches=3)


@pytest.mark.parametrize("late", [-4, 7])
def test_nothing_depends_on_when_a_schedule_begins(late: int) -> None:
    problem, schedule = SMALL.problem(), family("1f1b").schedule(SMALL)
    found = measure(problem, replace(schedule, start=schedule.start + late))
    assert found == measure(problem, schedule)
    assert found.makespan == (3 + 2 - 1) * 3  # (m + p - 1) (tF + tB)
    assert found.rank_spans == (12, 9)  # rank 1 works without a pause: 3 (1 + 2)


def test_a_schedule_without_rows_takes_no_time() -> None:
    program = Program.from_orders([[], []])
    empty = Schedule(program=program, start=np.zeros(0, dtype=np.int64))
    found = measure(SMALL.problem(), empty)
    assert (found.makespan, found.work, found.rank_spans) == (0, 0, (0, 0))
    assert found.idle_ratio == found.idle_over_work == 0


def test_a_rank_that_does_nothing_has_no_span() -> None:
    problem = by_hand(
        [("0F0", 2, (0,)), ("1F0", 0, (1,))],
        resources=[Resource(name=f"rank {r}", rank=r) for r in range(3)],
        stores=[Store(name=f"memory of rank {r}") for r in range(3)],
    )
    program = Program.from_orders([["0F0"], ["1F0"], []])
    found = measure(problem, Schedule(program=program, start=np.array([3, 4])))
    assert found.rank_spans == (2, 0, 0)  # nor has one whose only task takes no time
    assert found.idle_ticks == (0, 2, 2)
