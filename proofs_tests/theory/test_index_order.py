"""Index order: its edges change no optimum, and are refused where microbatches differ at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.identical import identical
from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.theory.model.problem import Edges, Problem, Resource, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.differences import DIFFERENCES, with_edges
from proofs_tests.solvers.small import by_hand, split, tiny_pipelines

SPLIT = Pipeline(num_ranks=2, num_microbatches=3, split_backward=True)


@settings(max_examples=sized(60, full=200))
@given(tiny_pipelines())
def test_the_edges_change_no_optimum(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    order = index_order(problem)
    ordered = with_edges(problem, order.order_edges, order.memory_edges)
    without, with_them = brute_force(problem), brute_force(ordered)
    assert (without and without.makespan) == (with_them and with_them.makespan)


@settings(max_examples=sized(50, full=150))
@given(tiny_pipelines())
def test_relabelled_schedules_keep_every_edge(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is None:
        return
    order = index_order(problem)
    start = np.array(best.start, dtype=np.int64)
    # A relabelled schedule: in each class, the i-th smallest start goes to microbatch i.
    start[order.groups[0]] = np.sort(start[order.groups[0]], axis=1)
    end = start + problem.duration
    for edges in (problem.edges, order.order_edges, order.memory_edges):
        assert (start[edges.after] >= end[edges.before] + edges.lag).all()
    for life in order.lifecycles:
        limit = order.limit(life)
        assert limit is None or limit >= 1


@settings(max_examples=sized(50, full=150))
@given(tiny_pipelines())
def test_exact_stores_need_nothing_but_their_edges(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    order = index_order(problem)
    if any((limit := order.limit(life)) is not None and limit < 1 for life in order.lifecycles):
        assert brute_force(problem) is None
        return
    stores = tuple(
        replace(store, capacity=None) if number in exact_stores(order) else store
        for number, store in enumerate(problem.stores)
    )
    freed = with_edges(replace(problem, stores=stores), order.order_edges, order.memory_edges)
    held, free = brute_force(problem), brute_force(freed)
    assert (held and held.makespan) == (free and free.makespan)


def test_the_edges_of_a_small_pipeline_by_hand() -> None:
    order = index_order(Pipeline(num_ranks=1, num_microbatches=3, capacity=2).problem())
    # Tasks 0..2 are F, 3..5 are B. Room for two: F2 after the end of B0.
    assert pairs(order.order_edges) == [(0, 1), (1, 2), (3, 4), (4, 5)]
    assert pairs(order.memory_edges) == [(3, 2)]
    assert exact_stores(order) == {0}


@pytest.mark.parametrize(
    ("released", "capacity", "limit"),
    [
        # F acquires 3, I leaves 2: room 8 lets 3 + 2 + 2 in, not another 2: K = (8 - 3) div 2 + 1.
        (1, 8, 3),
        # Residuals: I leaves 5 but F's own 3 are the least: K = (8 - 3) div 3 + 1.
        (-2, 8, 2),
        (0, 8, 2),
        (0, 3, 1),
        (0, 2, -1),
        (0, None, None),
    ],
)
def test_limits_by_hand(released: int, capacity: int | None, limit: int | None) -> None:
    pipeline = SPLIT.with_changes(activation=3, released_at_input=released, capacity=capacity)
    order = index_order(pipeline.problem())
    assert [order.limit(life) for life in order.lifecycles] == [limit, limit]
    simple = released == 0
    assert exact_stores(order) == (frozenset({0, 1}) if simple else frozenset())


def test_a_store_of_two_chunks_is_not_expressed_by_edges() -> None:
    order = index_order(
        Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, capacity=2).problem()
    )
    assert len(order.lifecycles) == 2
    assert exact_stores(order) == frozenset()


def test_all_that_is_released_at_once_hides_nothing_for_an_instant() -> None:
    # F and I take no time, so 1 of 2 units may go the moment they come: room for 1 is enough.
    pipeline = split(1, 2, 1, (0, 0, 1), part=True)
    assert brute_force(pipeline.problem()) is not None
    assert index_order(pipeline.problem()).lifecycles == ()


def test_a_precedence_of_negative_lag_forces_no_order() -> None:
    # Starts: I at 0 and 1 on rank 1 give 4 back, F at 0 and 5 on rank 0 take 6, W at 21 and 22 on
    # rank 2 give 2 back: loads 4 + 3 - 2 - 2 + 3 = 6 <= 7, and 23 ticks in all. Taken for ordered
    # F, I, W, microbatch 1 would wait for W0, which ends at 22: 27 ticks.
    m = range(2)
    problem = by_hand(
        [(f"0F{j}", 5, (0,)) for j in m]
        + [(f"0I{j}", 1, (1,)) for j in m]
        + [(f"0W{j}", 1, (2,)) for j in m],
        [(f"0F{j}", f"0I{j}", -20) for j in m] + [(f"0I{j}", f"0W{j}", 20) for j in m],
        resources=[Resource(name=f"rank {r}", rank=r) for r in range(3)],
        stores=[Store(name="memory", base=4, capacity=7)],
        events=[(f"0F{j}", False, 0, 3) for j in m]
        + [(f"0I{j}", True, 0, -2) for j in m]
        + [(f"0W{j}", True, 0, -1) for j in m],
    )
    assert index_order(problem).lifecycles == ()
    assert lower_bounds(problem).best.bound <= 23


def test_changes_of_one_moment_are_added_up() -> None:
    # F takes 5 and gives 3 back when it starts: 2 are held, and room for 2 is enough.
    problem = by_hand(
        [("0F0", 1, (0,)), ("0B0", 1, (0,))],
        [("0F0", "0B0", 0)],
        stores=[Store(name="memory of rank 0", capacity=2)],
        events=[("0F0", False, 0, 5), ("0F0", False, 0, -3), ("0B0", True, 0, -2)],
    )
    order = index_order(problem)
    assert [order.limit(life) for life in order.lifecycles] == [1]


MEMORY = Store(name="memory of rank 0", capacity=9)
F_THEN_B = [("0F0", 1, (0,)), ("0B0", 1, (0,))], [("0F0", "0B0", 0)]


def test_a_part_released_when_the_forward_ends_is_more_than_an_edge_can_say() -> None:
    events = [("0F0", False, 0, 3), ("0F0", True, 0, -1), ("0B0", True, 0, -2)]
    order = index_order(by_hand(*F_THEN_B, stores=[MEMORY], events=events))
    assert [(life.acquired, life.held) for life in order.lifecycles] == [(3, 2)]
    assert exact_stores(order) == frozenset()


@pytest.mark.parametrize(
    "events",
    [
        # The load returns to 0 between the two tasks.
        [("0F0", False, 0, 1), ("0F0", True, 0, -1), ("0B0", False, 0, 1), ("0B0", True, 0, -1)],
        # Something stays behind.
        [("0F0", False, 0, 2), ("0B0", True, 0, -1)],
        # Acquired when the forward ends, or released when the backward starts.
        [("0F0", True, 0, 1), ("0B0", True, 0, -1)],
        [("0F0", False, 0, 1), ("0B0", False, 0, -1)],
    ],
)
def test_other_uses_have_no_lifecycle(events: list[tuple[str, bool, int, int]]) -> None:
    assert index_order(by_hand(*F_THEN_B, stores=[MEMORY], events=events)).lifecycles == ()


def test_one_unclear_use_of_a_store_leaves_no_lifecycle_in_it() -> None:
    # Stage 1 gives back 2 units of the base load, which makes room for stage 0.
    tasks, edges = F_THEN_B
    events = [("0F0", False, 0, 1), ("0B0", True, 0, -1), ("1F0", True, 0, -2)]
    store = Store(name="memory of rank 0", base=2, capacity=2)
    problem = by_hand([*tasks, ("1F0", 1, (0,))], edges, stores=[store], events=events)
    assert index_order(problem).lifecycles == ()
    assert brute_force(problem) is not None


def sizes(problem: Problem) -> list[int]:
    """The numbers of microbatches of the groups."""
    return sorted(group.shape[1] for group in index_order(problem).groups)


def pairs(edges: Edges) -> list[tuple[int, int]]:
    return list(zip(edges.before.tolist(), edges.after.tolist(), strict=True))


@pytest.mark.parametrize("differ", DIFFERENCES, ids=lambda differ: differ.__name__)
@pytest.mark.parametrize("pipeline", [SPLIT, Pipeline(num_ranks=2, num_microbatches=3)])
def test_any_difference_between_microbatches_is_seen(
    differ: Callable[[Problem], Problem], pipeline: Pipeline
) -> None:
    problem, changed = pipeline.problem(), differ(pipeline.problem())
    assert sizes(problem) == [3]
    assert identical(index_order(problem)) is not None
    # One microbatch is like no other, and where two are joined neither is.
    others = {"edge_across": [1, 1, 1], "other_number": [3]}
    assert sizes(changed) == others.get(differ.__name__, [1, 2])
    assert identical(index_order(changed)) is None


def test_mixed_splits_fused_pairs_and_tasks_of_no_microbatch_are_seen() -> None:
    mixed = SPLIT.with_changes(split_backward=((True, False, True), (True, True, True)))
    assert sizes(mixed.problem()) == [1, 2]
    fused = Pipeline(num_ranks=2, num_microbatches=3, overlaps=(((1, 1), (1, 0)),))
    assert sizes(fused.problem()) == [1, 1, 1]
    assert sizes(by_hand([("0F0", 1, (0,)), ("0STEP", 1, (0,))])) == [1, 1]
    for odd in (mixed.problem(), fused.problem(), by_hand([])):
        assert identical(index_order(odd)) is None


def test_equal_counts_do_not_make_microbatches_independent() -> None:
    # Each microbatch waits once for the other, and each fused pair joins two of them.
    rows = [(f"{stage}F{j}", 1, (0,)) for stage in range(2) for j in range(2)]
    crossed = by_hand(rows, [("0F0", "1F1", 0), ("0F1", "1F0", 0)])
    assert sizes(crossed) == [1, 1]
    straight = by_hand(rows, [("0F0", "1F0", 0), ("0F1", "1F1", 0)])
    assert sizes(straight) == [2]
    joined = [("(0F0;0B1)OVERLAP_F_B", 1, (0,)), ("(0F1;0B0)OVERLAP_F_B", 1, (0,))]
    assert sizes(by_hand(joined)) == [1, 1]


def test_where_microbatches_differ_the_edges_would_be_wrong() -> None:
    # One rank, room for one: F0 B0 and F1 B1 in either order; a tail of 9 ticks on rank 1 follows
    # microbatch 1 only. It should go first: 2 + 9 = 11; in index order it is 2 + 2 + 9 = 13.
    problem = by_hand(
        [("0F0", 2, (0,)), ("0F1", 2, (0,)), ("1F1", 9, (1,))],
        [("0F1", "1F1", 0)],
        resources=[Resource(name=f"rank {r}", rank=r) for r in range(2)],
    )
    assert len(index_order(problem).order_edges) == 0
    forced = with_edges(
        problem, Edges(before=np.array([0]), after=np.array([1]), lag=np.array([0]))
    )
    free, in_order = brute_force(problem), brute_force(forced)
    assert free is not None
    assert in_order is not None
    assert (free.makespan, in_order.makespan) == (11, 13)
