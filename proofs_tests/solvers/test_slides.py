"""Slides: rules kept, nothing longer, nothing fuller."""

from __future__ import annotations

from functools import cache

import numpy as np

from bubbleproof.solvers.shortening.slides import slid_starts
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import measure_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check


@cache
def made() -> list[FamilyMember]:
    return [
        member(name, p=p, m=m)
        for name in ("1f1b", "zb-h2", "hanayo", "v-min", "chimera", "trecomp", "svpp")
        for p, m in ((2, 3), (4, 4), (4, 7))
    ]


def by_task(problem: Problem, schedule: Schedule) -> Ints:
    starts = np.empty(problem.num_tasks, dtype=np.int64)
    starts[problem.locate(schedule.program.actions)] = schedule.start
    return starts


def timed(problem: Problem, starts: Ints) -> Schedule:
    """The schedule with these starts, to be checked in full."""
    order = np.lexsort((starts + problem.duration, starts, problem.rank_of_task))
    program = Program(actions=problem.actions.take(order), resource=problem.rank_of_task[order])
    return Schedule(program=program, start=starts[order])


def peak_of(problem: Problem, starts: Ints) -> int:
    tasks = np.arange(problem.num_tasks)
    return max(measure_rows(problem, tasks, problem.rank_of_task, starts).peak_activations)


def test_slides_keep_every_rule_and_the_limit_and_lengthen_nothing() -> None:
    shorter = 0
    for found in made():
        problem = found.problem
        starts = by_task(problem, found.schedule)
        limit = peak_of(problem, starts)
        slid = slid_starts(problem, starts, limit)
        assert check(problem.with_capacity(limit), timed(problem, slid)).ok
        spans = [int((s + problem.duration).max() - s.min()) for s in (starts, slid)]
        assert spans[1] <= spans[0]
        assert slid.min() == 0
        shorter += spans[1] < spans[0]
    assert shorter


def test_slides_find_two_ticks_that_a_hand_can_see() -> None:
    # Rank 0 runs 0F0 and then waits for 0B0 with 0F1 behind it; rank 1 would have time for 1F1.
    # To the left 0F1 moves into the wait: 0F0 0F1 0B0 0B1 and 1F0 1B0 1F1 1B1 need
    # 1 + (1 + 2 + 1 + 2) + 2 = 9 ticks, the bound (m + p-1)(tF + tB); the order given needs 12.
    problem = Pipeline(num_ranks=2, num_microbatches=2).problem()
    slow = Program.from_orders([["0F0", "0B0", "0F1", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])
    starts = by_task(problem, left_shift(problem, slow))
    assert int((starts + problem.duration).max()) == 12
    slid = slid_starts(problem, starts, 2)
    assert int((slid + problem.duration).max()) == 9
    # With room for one unit nothing can move.
    assert (slid_starts(problem, starts, 1) == starts).all()
