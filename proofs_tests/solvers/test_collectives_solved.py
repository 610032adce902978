"""ZeRO collectives on NICs are tasks like any other: the plain door solves them exactly."""

from __future__ import annotations

import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify import check
from proofs_tests.solvers.brute_force import brute_force


def sharded(p: int, m: int, zero: int, capacity: int | None = None) -> Problem:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=1, backward=2, capacity=capacity, static=1
    )
    sharding = Sharding(
        zero=zero, gather=2, reduce=3, regather=1, parameter=1, gradient=1, dequeue=(m - 1, 1)
    )
    return pipeline.with_changes(sharding=sharding).problem()


@pytest.mark.parametrize("engine", ["auto", "cpsat"])
@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 2, 2), (1, 2, 3), (2, 2, 1), (1, 3, 3)])
def test_the_optimum_is_that_of_brute_force(shape: tuple[int, int, int], engine: str) -> None:
    problem = sharded(*shape)
    best = brute_force(problem, every_tick=True)
    assert best is not None
    found = solve(problem, SolveOptions(engine=engine, threads=1))
    assert (found.status, found.value) == (Status.OPTIMAL, best.makespan)
    assert found.schedule is not None
    assert check(problem, found.schedule).ok


def test_gathered_parameters_need_room() -> None:
    wide = sharded(1, 2, 3, capacity=5)
    best = brute_force(wide, every_tick=True)
    assert best is not None
    assert solve(wide, SolveOptions(threads=1)).value == best.makespan
    # Static 1 and a gathered parameter leave no room for an activation.
    tight = sharded(1, 2, 3, capacity=2)
    assert brute_force(tight, every_tick=True) is None
    assert solve(tight, SolveOptions(threads=1)).status is Status.INFEASIBLE
