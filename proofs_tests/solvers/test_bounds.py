"""Bounds on named cases, derived by hand, and the sets of tasks that attain them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.solvers.bounds import Bounds, critical_set, lower_bounds
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from proofs_tests.solvers.best_machine import best_machine
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand, offloading, prefetch, tiny_pipelines


@pytest.mark.parametrize(
    ("pipeline", "bound"),
    [
        # Rank 1: head 1F0 after 0F0 = 1, work 4 * 3, tail 0B = 2.
        (Pipeline(num_ranks=2, num_microbatches=4), 15),
        # (p - 1)(tF + tB) + m (tF + tB) = 3 * 3 + 8 * 3.
        (Pipeline(num_ranks=4, num_microbatches=8), 33),
        # Room for one on rank 0: each F waits for the B before: 4 round trips of 1 + 1 + 2 + 2.
        (Pipeline(num_ranks=2, num_microbatches=4, capacity=1), 24),
        # A slow middle stage: head 1, work 3 * (5 + 5), tail 2.
        (Pipeline(num_ranks=3, num_microbatches=3, forward=(1, 5, 1), backward=(2, 5, 2)), 33),
        # Split: rank 0 must do F, I, W of both; rank 1: head 1, work 2 * 3, no tail for W: 7.
        (Pipeline(num_ranks=2, num_microbatches=2, split_backward=True), 7),
        # Slices: F of both slices, then B in reverse. Rank 1: head 1, work 2 * 2 * 3, tail 2.
        (Pipeline(num_ranks=2, num_microbatches=2, num_slices=2), 15),
        # Two chunks in a V on one rank, latency never counts there: all 2 * 2 * 3 ticks of work.
        (Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, latency=5), 12),
        # Latency: rank 1 starts after 1 + 5, works 2 * 3, then 5 + 2.
        (Pipeline(num_ranks=2, num_microbatches=2, latency=5), 19),
    ],
)
def test_tight_bounds_by_hand(pipeline: Pipeline, bound: int) -> None:
    problem = pipeline.problem()
    best = lower_bounds(problem).best
    assert best.bound == bound
    assert check_certificate(problem, best).ok
    if problem.num_tasks <= 12:
        found = brute_force(problem)
        assert found is not None
        assert found.makespan == bound


def test_heads_and_tails_by_hand() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=2).problem()
    bounds = lower_bounds(problem)
    # Each waits for its own inputs and for its class: 0F1 after 0F0, 1F1 after 0F1 and 1F0, 0B0
    # after 0F0 1, 1F0 1, 1B0 2.
    assert heads(bounds, problem, "0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1") == [0, 1, 1, 2, 2, 4, 4, 6]
    # After 0B1 nothing; after 0B0 and 1B1 it, 2; after 1B0 or 1F1 also 1B1, 4; after 1F0 also 1B0.
    tails = [int(bounds.tails[problem.task(text)]) for text in ("0B1", "0B0", "1B1", "1B0")]
    assert tails == [0, 2, 2, 4]
    tails = [int(bounds.tails[problem.task(text)]) for text in ("1F1", "1F0")]
    assert tails == [4, 6]


def heads(bounds: Bounds, problem: Problem, texts: str) -> list[int]:
    return [int(bounds.heads[problem.task(text)]) for text in texts.split()]


def test_transfers_lengthen_paths_between_computations_only() -> None:
    # The link: the first off-load begins 1 tick in, 2 * 3 of work, a B of 2 follows: 9.
    assert lower_bounds(offloading()).best.bound == 9
    assert lower_bounds(offloading(5)).best.bound == 1 + 5 * 3 + 2
    # A load before everything is no part of the makespan; both computations are.
    assert lower_bounds(prefetch()).best.bound == 2
    # A transfer after everything neither.
    late = by_hand(
        [("0F0", 1, (0,)), ("0OFFLOAD0", 5, (1,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=RANK_AND_LINK,
    )
    assert lower_bounds(late).best.bound == 1


def test_a_cycle_is_reported() -> None:
    problem = by_hand([("0F0", 1, (0,)), ("0B0", 1, (0,))], [("0F0", "0B0", 0), ("0B0", "0F0", 0)])
    assert lower_bounds(problem).is_cyclic


@given(tiny_pipelines())
def test_no_other_set_of_one_resource_proves_more(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    assert (problem.rank_of_task != NONE).all()
    bounds = lower_bounds(problem)
    ticks, heads = problem.duration.tolist(), bounds.heads.tolist()
    tails = bounds.tails.tolist()
    attainable = 0
    for resource in range(len(problem.resources)):
        tasks = problem.occupancy.task[problem.occupancy.resource == resource].tolist()
        for size in range(1, len(tasks) + 1):
            for chosen in combinations(tasks, size):
                value = min(heads[t] for t in chosen) + min(tails[t] for t in chosen)
                attainable = max(attainable, value + sum(ticks[t] for t in chosen))
    assert best_machine(problem, bounds).bound == attainable <= bounds.best.bound


def largest_of_all_sets(heads: list[int], work: list[int], tails: list[int]) -> int:
    """min head + work + min tail, maximised over every set by trying each pair of minima."""
    return max(
        head
        + tail
        + sum(w for h, w, t in zip(heads, work, tails, strict=True) if h >= head and t >= tail)
        for head in heads
        for tail in tails
        if any(h >= head and t >= tail for h, t in zip(heads, tails, strict=True))
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 20)), min_size=1, max_size=9
    )
)
def test_jacksons_schedule_gives_the_best_set(jobs: list[tuple[int, int, int]]) -> None:
    heads, work, tails = (list(column) for column in zip(*sorted(jobs), strict=True))
    bound, chosen = critical_set(heads, work, tails)
    of_chosen = (
        min(heads[j] for j in chosen) + sum(work[j] for j in chosen) + min(tails[j] for j in chosen)
    )
    assert bound == of_chosen == largest_of_all_sets(heads, work, tails)
