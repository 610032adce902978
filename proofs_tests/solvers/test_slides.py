"""Slides, list schedules and inserted periods: rules kept, nothing longer, nothing fuller."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bubbleproof.solvers.shortening.few_microbatches import lengthened
from bubbleproof.solvers.shortening.list_schedule import list_starts, mirrored
from bubbleproof.solvers.shortening.slides import slid_starts
from bubbleproof.theory.families import FamilyMember, family, member
from bubbleproof.theory.families.chimera import closed_form_order
from bubbleproof.theory.model.actions import Action, Ints, Kind
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


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_list_schedule_is_a_schedule_in_either_direction_of_time(is_backwards: bool) -> None:
    for found in made():
        if any(action.kind is Kind.R for action in found.problem.actions):
            continue  # recomputed units are taken twice: not what list schedules are for
        problem = found.problem
        limit = peak_of(problem, by_task(problem, found.schedule))
        given = mirrored(
            problem,
            is_backwards=is_backwards,
            is_bidirectional=found.pipeline.is_bidirectional,
        )
        for seed in range(3):
            ranking = np.random.default_rng(seed).permutation(problem.num_tasks)
            starts = list_starts(given, ranking, limit)
            if is_backwards:
                starts = int((starts + problem.duration).max()) - starts - problem.duration
            assert check(problem.with_capacity(limit), timed(problem, starts)).ok


def test_periods_are_inserted_where_the_order_repeats_and_nowhere_else() -> None:
    short = Pipeline(num_ranks=4, num_microbatches=24, placement="bidirectional")
    schedule = left_shift(short.problem(), closed_form_order(short))
    for more in (1, 2, 5):
        longer = short.with_changes(num_microbatches=24 + 4 * more)
        found = lengthened(short, schedule, 24 + 4 * more, 4)
        assert found is not None
        assert set(found.actions) == set(closed_form_order(longer).actions)
        ours, closed = (
            left_shift(longer.problem(), order) for order in (found, closed_form_order(longer))
        )
        assert check(longer.problem(), ours).ok
        assert by_task(longer.problem(), ours).max() == by_task(longer.problem(), closed).max()
    # Four microbatches are over before anything repeats.
    few = short.with_changes(num_microbatches=4)
    assert lengthened(few, left_shift(few.problem(), closed_form_order(few)), 8, 4) is None


def test_a_schedule_with_a_break_in_the_middle_is_not_lengthened() -> None:
    # 1F1B that waits a tick more again and again: the starts repeat, but never for long enough.
    short = Pipeline(num_ranks=3, num_microbatches=12)
    problem = short.problem()
    schedule = left_shift(problem, family("1f1b").program(short))
    assert lengthened(short, schedule, 15, 1) is not None
    late = schedule.start // 7  # now and then a tick more
    broken = Schedule(program=schedule.program, start=schedule.start + late)
    assert check(problem, broken).ok
    assert lengthened(short, broken, 15, 1) is None


def test_microbatches_of_a_lengthened_order_are_all_there_once() -> None:
    made = family("v-half").fitted(Pipeline(num_ranks=4, num_microbatches=57, num_chunks=2))
    found = family("v-half").program(made).actions
    assert len(set(found)) == len(found) == made.problem().num_tasks
    assert Action.parse("0F56") in set(found)
