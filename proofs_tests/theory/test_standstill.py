"""How far a program comes: against a token walk, and by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.standstill import standstill
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift

TWO = Pipeline(num_ranks=2, num_microbatches=2).problem()


def walk(problem: Problem, orders: list[list[str]]) -> set[str]:
    """The labels that run where each rank does its next action once its inputs are there."""
    needs: dict[str, set[str]] = {problem.label(t): set() for t in range(problem.num_tasks)}
    for before, after in zip(
        problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True
    ):
        needs[problem.label(after)].add(problem.label(before))
    left, done = [list(order) for order in orders], set[str]()
    moved = True
    while moved:
        moved = False
        for order in left:
            while order and needs[order[0]] <= done:
                done.add(order.pop(0))
                moved = True
    return done


def test_two_ranks_that_wait_for_each_other() -> None:
    """Rank 1 wants 1B1 before 1F1: it stops after 1F0, and rank 0 before 0B0, which needs 1B0."""
    orders = [["0F0", "0B0", "0F1", "0B1"], ["1F0", "1B1", "1F1", "1B0"]]
    found = standstill(TWO, Program.from_orders(orders))
    assert [str(a) for a in found.schedule.program.actions] == ["0F0", "1F0"]
    assert found.schedule.start.tolist() == [0, 1]
    assert found.sentences() == (
        "nothing moves after 2 ticks",
        "rank 0 waits at 0B0 for 1B0",
        "rank 1 waits at 1B1 for 1F1",
    )


def test_what_stands_nowhere_is_waited_for() -> None:
    orders = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1"]]  # 1B1 is missing
    found = standstill(TWO, Program.from_orders(orders))
    assert found.sentences()[1:] == ("rank 0 waits at 0B1 for 1B1 (which stands nowhere)",)


def test_rows_too_many_are_passed_over() -> None:
    orders = [["0F0", "0F0", "7F7", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]
    found = standstill(TWO, Program.from_orders(orders))
    assert found.waits == ()
    assert len(found.schedule) == TWO.num_tasks


@pytest.mark.parametrize("seed", range(40))
def test_random_orders_run_as_far_as_tokens_do(seed: int) -> None:
    chance = random.Random(seed)
    small = member("interleaved", p=2, m=2)
    orders = [[str(action) for action in order] for order in small.schedule.program.orders(2)]
    for order in orders:  # a few actions change places
        for _ in range(chance.randint(0, 3)):
            a, b = chance.sample(range(len(order)), 2)
            order[a], order[b] = order[b], order[a]
    program = Program.from_orders(orders)
    found = standstill(small.problem, program)
    assert {str(a) for a in found.schedule.program.actions} == walk(small.problem, orders)
    try:
        whole = left_shift(small.problem, program)
    except UntimedProgram:
        assert found.waits
        for wait in found.waits:
            assert wait.needs
    else:
        assert found.waits == ()
        assert np.array_equal(found.schedule.start, whole.start)
