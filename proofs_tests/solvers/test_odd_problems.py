"""Problems off the beaten track: transfers, instants without length, cycles, huge numbers."""

from __future__ import annotations

import pytest

from bubbleproof.solvers import ENGINES as ALL_ENGINES
from bubbleproof.solvers import Result, SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.cases import hand_built, overlapped
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand, offloading, prefetch

TWO_RANKS = (Resource(name="rank 0", rank=0), Resource(name="rank 1", rank=1))
ENGINES = ("auto", *ALL_ENGINES)


def solved(problem: Problem, engine: str = "auto") -> Result:
    """The result of a solve whose schedule, if any, the checker accepts."""
    result = solve(problem, SolveOptions(engine=engine, threads=1))
    if result.schedule is not None:
        assert check(problem, result.schedule).ok
    return result


def late_offload() -> Problem:
    """0F0 (3 ticks), then 0OFFLOAD0 (10) on the link; 0F1 (1) any time: 4 ticks of computation."""
    return by_hand(
        [("0F0", 3, (0,)), ("0F1", 1, (0,)), ("0OFFLOAD0", 10, (1,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=RANK_AND_LINK,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("problem", "optimum"), [(prefetch(), 2), (offloading(), 9), (late_offload(), 4)]
)
def test_only_computation_counts(problem: Problem, optimum: int, engine: str) -> None:
    best = brute_force(problem, every_tick=True)
    assert best is not None
    assert best.makespan == optimum
    result = solved(problem, engine)
    assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)
    # The engine may not claim more than the truth because a transfer sticks out of the makespan.
    assert result.engine_bound in (None, optimum)


def test_an_idle_rank_shifted_early_is_not_optimal_with_transfers() -> None:
    # Left-shifted, 0F0 runs at 0 and 0B0 at 5: 6 ticks. The bound knows better, the engine too.
    assert lower_bounds(prefetch()).best.bound == 2
    assert solved(prefetch()).origin == "cpsat"


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_on_two_resources_and_overlapped_pairs_are_solved(engine: str) -> None:
    hand = solved(hand_built().problem, engine)
    # Rank 1 waits for 0F0 2 and a tick of latency, works 3 * (2 + 3), then a tick and 0B2 3: 22.
    assert (hand.status, hand.makespan) == (Status.OPTIMAL, 22)
    # A chain of waits: 0F0 1, 1F0 1, (1F1;1B0) 3, (0F2;0B0) 3, (1F2;1B1) 3, 1B2 2, 0B2 2.
    fused = solved(overlapped().problem, engine)
    assert (fused.status, fused.makespan) == (Status.OPTIMAL, 1 + 1 + 3 + 3 + 3 + 2 + 2)


def test_what_is_acquired_and_released_at_one_instant_never_counts() -> None:
    # Forward and backward take no time, so the load after all changes of the instant is 0.
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, forward=0, backward=0, capacity=0)
    problem = pipeline.problem()
    assert brute_force(problem) is not None
    assert solved(problem).status is Status.OPTIMAL


def test_no_store_falls_below_zero_even_without_a_capacity() -> None:
    # 1B0 frees what 0OFFLOAD0 brings, and no precedence says so; alone it would start at 0.
    # Only 0F0 (3 ticks) computes.
    problem = by_hand(
        [("0F0", 3, (0,)), ("0OFFLOAD0", 1, (1,)), ("1LOAD0", 1, (2,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=(*RANK_AND_LINK, Resource(name="link 2")),
        stores=[Store(name="host")],
        events=[("0OFFLOAD0", False, 0, 1), ("1LOAD0", True, 0, -1)],
    )
    result = solved(problem, "cpsat")
    assert (result.status, result.makespan) == (Status.OPTIMAL, 3)


def test_numbers_beyond_the_engines_are_no_obstacle() -> None:
    # A capacity above 64 bits is none; two chunks on a rank leave it to the engine.
    pipeline = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2, capacity=1 << 70)
    assert solved(pipeline.problem(), "cpsat").status is Status.OPTIMAL
    # Transfers of 2**42 ticks on both sides of the one computation, which alone counts.
    long = 1 << 42
    problem = by_hand(
        [("0LOAD0", long, (1,)), ("0F0", long, (0,)), ("0OFFLOAD0", long, (1,))],
        [("0LOAD0", "0F0", 0), ("0F0", "0OFFLOAD0", 0)],
        resources=RANK_AND_LINK,
    )
    result = solved(problem)
    assert (result.status, result.makespan) == (Status.OPTIMAL, long)


def test_an_idle_first_rank_and_work_of_no_length_are_solved() -> None:
    result = solved(by_hand([("0F0", 0, (1,))], resources=TWO_RANKS))
    assert (result.status, result.makespan) == (Status.OPTIMAL, 0)


@pytest.mark.parametrize(
    "problem", [by_hand([]), by_hand([("0LOAD0", 2, (1,))], resources=RANK_AND_LINK)]
)
def test_a_problem_that_computes_nothing_is_refused(problem: Problem) -> None:
    with pytest.raises(ValueError, match="needs at least one task on a rank, got none"):
        solve(problem)


def test_a_cycle_of_precedences_is_infeasible_and_named() -> None:
    problem = by_hand([("0F0", 1, (0,)), ("0B0", 1, (0,))], [("0F0", "0B0", 0), ("0B0", "0F0", 0)])
    result = solved(problem)
    assert result.status is Status.INFEASIBLE
    assert result.reason == "the precedences have a cycle: 0B0 waits for 0F0 waits for 0B0"


@pytest.mark.parametrize(("ticks", "lag"), [(0, 0), (1, -10)])
def test_a_cycle_that_takes_no_time_is_no_contradiction(ticks: int, lag: int) -> None:
    # Both at one instant, or 0B0 after 0F0 by at most 9 ticks: schedules exist.
    problem = by_hand(
        [("0F0", ticks, (0,)), ("0B0", ticks, (0,))], [("0F0", "0B0", 0), ("0B0", "0F0", lag)]
    )
    result = solved(problem)
    assert (result.status, result.makespan) == (Status.OPTIMAL, 2 * ticks)


@pytest.mark.parametrize(
    ("changes", "optimum"),
    [
        # F 2 and B 4 of two chunks and 40 microbatches.
        ({"num_ranks": 1}, 40 * 2 * 6),
        ({"capacity": 2}, None),
        ({"num_chunks": 1, "capacity": 1}, 40 * (4 * 6 + 6)),  # one microbatch at a time, 6 links
        ({"forward": 0, "backward": 0, "latency": 0}, 0),
        ({"forward": 0}, None),
        ({"num_microbatches": 3}, None),
        ({"forward": 2 << 40, "backward": 4 << 40, "latency": 1 << 40}, None),
        ({"forward": 7, "backward": 11, "latency": 3}, None),
        ({"forward": (2,) * 7 + (1 << 40,)}, None),
        ({"activation": 1 << 40, "capacity": 8 << 40}, None),
        ({"capacity": 1 << 70}, None),
        ({"placement": "wave", "capacity": 1 << 70}, None),
        ({"placement": "wave", "forward": 2 << 40, "backward": 4 << 40, "latency": 9}, None),
        ({"placement": "wave", "forward": 0, "backward": 0, "latency": 0, "capacity": 2}, 0),
    ],
)
def test_loops_at_the_edges_of_every_method(
    changes: dict[str, object], optimum: int | None
) -> None:
    """Lists, combs, windows, prices and engines step aside, or what they find is right."""
    given = {"num_ranks": 4, "num_microbatches": 40, "num_chunks": 2, "capacity": 8}
    times = {"forward": 2, "backward": 4, "latency": 1}
    problem = Pipeline(**{**given, **times, **changes}).problem()  # type: ignore[arg-type]  # any
    result = solve(problem, SolveOptions(work=0.3, threads=1))
    assert result.schedule is not None
    assert check(problem, result.schedule).ok
    assert result.value is not None
    assert result.value >= result.best_bound
    if optimum is not None:
        assert result.value == optimum
