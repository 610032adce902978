"""The ground truth itself: hand-derived optima, and both ways of walking through time agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.solvers.brute_force import Best, brute_force
from proofs_tests.solvers.small import offloading, prefetch, tiny_pipelines
from proofs_tests.verify.plain import broken_rules, plain_measures


def as_schedule(problem: Problem, best: Best) -> Schedule:
    """The schedule that starts each task where the search did (precondition: one resource each)."""
    start = np.array(best.start, dtype=np.int64)
    resource = problem.occupancy.resource
    order = np.lexsort((start + problem.duration, start, resource))
    program = Program(actions=problem.actions.take(order), resource=resource[order])
    return Schedule(program=program, start=start[order])


@pytest.mark.parametrize(
    ("pipeline", "optimum"),
    [
        # 1F1B's (m + p - 1)(tF + tB) is least: p = 2, m = 2 or 3: 3 * 3 = 9, 4 * 3 = 12.
        (Pipeline(num_ranks=2, num_microbatches=2), 9),
        (Pipeline(num_ranks=2, num_microbatches=3), 12),
        # Room for one: a microbatch passes rank 0 before the next enters: 3 * (1 + 1 + 2 + 2) = 18.
        (Pipeline(num_ranks=2, num_microbatches=3, capacity=1), 18),
        # Split: rank 0 works 6 ticks and cannot begin its I before 0F, 1F, 1I are through; 7 is
        # the head of rank 1 (1) plus its 6.
        (Pipeline(num_ranks=2, num_microbatches=2, split_backward=True), 7),
        (Pipeline(num_ranks=1, num_microbatches=2, capacity=0), None),
    ],
)
def test_hand_derived_optima(pipeline: Pipeline, optimum: int | None) -> None:
    best = brute_force(pipeline.problem())
    assert (best and best.makespan) == optimum


def test_transfers_do_not_count_but_take_their_time() -> None:
    found = brute_force(prefetch(), every_tick=True)
    assert found is not None
    assert (found.makespan, found.start[1], found.start[2] - found.start[0]) == (2, 0, 1)
    chain = brute_force(offloading(), every_tick=True)
    assert chain is not None
    assert chain.makespan == 9  # 3 m + 3


def test_no_schedule_longer_than_asked_is_returned() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=2).problem()
    assert brute_force(problem, most=9) is not None
    assert brute_force(problem, most=8) is None


@settings(max_examples=40)
@given(tiny_pipelines())
def test_jumping_to_events_misses_nothing(pipeline: Pipeline) -> None:
    problem = pipeline.with_changes(num_microbatches=min(2, pipeline.num_microbatches)).problem()
    jumping, ticking = brute_force(problem), brute_force(problem, every_tick=True)
    assert (jumping and jumping.makespan) == (ticking and ticking.makespan)


@given(tiny_pipelines())
def test_what_it_finds_is_a_schedule_of_that_length(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is not None:
        schedule = as_schedule(problem, best)
        assert broken_rules(problem, schedule) == set()
        assert plain_measures(problem, schedule)["makespan"] == best.makespan
