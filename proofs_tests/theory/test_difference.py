"""What differs between two schedules: counted by hand, and the same from either side."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

from bubbleproof.testing.strategies import random_program
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.orders.difference import _kept, difference
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

PIPELINE = Pipeline(num_ranks=2, num_microbatches=3)
PROBLEM = PIPELINE.problem()


def test_a_schedule_differs_not_from_itself() -> None:
    one = PROBLEM, family("1f1b").schedule(PIPELINE)
    found = difference(one, one)
    assert found.is_none
    assert found.common == 12


def test_one_action_that_went_forward_is_all_that_moved() -> None:
    # Rank 0 of 1F1B: F0 F1 B0 F2 B1 B2. With F2 before B0 only F2 (or B0) has changed places.
    orders = [
        ["0F0", "0F1", "0F2", "0B0", "0B1", "0B2"],
        ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2"],
    ]
    other = left_shift(PROBLEM, Program.from_orders(orders))
    found = difference((PROBLEM, family("1f1b").schedule(PIPELINE)), (PROBLEM, other))
    (moved,) = found.moved
    assert moved.resource == "rank 0"
    assert (moved.action, moved.place_a, moved.place_b) in [("0F2", 3, 2), ("0B0", 2, 3)]
    assert found.sooner > 0
    assert (found.elsewhere, found.only_a, found.only_b) == ((), (), ())


def test_what_only_one_has_and_what_runs_elsewhere() -> None:
    loop = Pipeline(num_ranks=2, num_microbatches=3, num_chunks=2)
    one, other = (listed(each) for each in (loop, loop.with_changes(placement="wave")))
    found = difference(one, other)
    # Stage 2 is on rank 0 in a loop and on rank 1 in a wave, stage 3 the other way about.
    assert {(e.action[0], e.resource_a, e.resource_b) for e in found.elsewhere} == {
        ("2", "rank 0", "rank 1"),
        ("3", "rank 1", "rank 0"),
    }
    assert len(found.elsewhere) == 2 * 2 * 3
    plain = PROBLEM, family("1f1b").schedule(PIPELINE)
    back = difference(one, plain)
    assert {action[0] for action in back.only_a} == {"2", "3"}
    assert back.only_b == ()


def listed(pipeline: Pipeline) -> tuple[Problem, Schedule]:
    """Any schedule of a pipeline: task by task along the precedences."""
    problem = pipeline.problem()
    return problem, left_shift(problem, random_program(problem, Random(1)))


def test_the_kept_part_is_a_longest_one() -> None:
    for order in permutations(range(6)):
        kept = sorted(_kept(list(order)))
        numbers = [order[i] for i in kept]
        assert numbers == sorted(numbers)
        assert len(kept) == longest(order)


def longest(order: tuple[int, ...]) -> int:
    """The length of a longest rising part, by the recursion over its last number."""
    best: list[int] = []
    for i, number in enumerate(order):
        best.append(1 + max((best[j] for j in range(i) if order[j] < number), default=0))
    return max(best)


def test_a_later_start_alone_is_a_difference() -> None:
    one = family("1f1b").schedule(PIPELINE)
    late = replace(one, start=one.start + 2)
    found = difference((PROBLEM, one), (PROBLEM, late))
    assert (found.sooner, found.later, found.moved) == (0, 12, ())
    assert not found.is_none
