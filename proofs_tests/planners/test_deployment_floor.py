"""What a deployment's numbers alone show, and searches that make shapes in turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.costs.combinations import AnyCount, Lists, legal
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.candidate_standing import legal_candidates
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.deployment_search import floor_of
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from proofs_tests.costs.cluster_cases import all_counted, with_memory
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.test_cluster_planning import LISTS, space_of
from proofs_tests.sized import sampled

MORE = replace(LISTS, zero=(0, 1, 2, 3), scope=("none", "attention", "full"))


def counts_of(mebibytes: int, lists: Lists = MORE) -> list[AnyCount]:
    return all_counted(with_memory(mebibytes << 20), lists)


@pytest.mark.parametrize("mebibytes", [96, 128, 512])
def test_the_floor_is_below_every_shape(mebibytes: int) -> None:
    """Of some it is what is known, of some without room it says so: neither is empty."""
    floors = set()
    for one in legal(counts_of(mebibytes)):
        standings, _ = legal_candidates(space_of(one), one.numbers.step_end)
        floors.add(floor_of(one) == NEVER)
        for each in standings:
            assert floor_of(one) <= each.least
    assert False in floors


@pytest.mark.parametrize("mebibytes", sampled([104, 128, 512], every=2))
def test_shapes_in_turn_give_the_same_plan(mebibytes: int) -> None:
    counts = counts_of(mebibytes)
    one, other = (
        plan_cluster(counts, space_of, PlanOptions(time_limit=PATIENCE), is_lazy=lazy)
        for lazy in (False, True)
    )
    assert isinstance(one, ClusterPlan)
    assert isinstance(other, ClusterPlan)
    assert (one.status, one.value) == (other.status, other.value) == (Status.OPTIMAL, one.value)
    assert len(one.rows) == len(other.rows)
    for row in other.rows:  # a bound of each, though not of every shape
        assert row.bound >= one.lower_bound or not row.bound


def test_named_orders_are_timed_and_nothing_else() -> None:
    """With 1F1B alone the best is the least of 1F1B over all; a bound stays one on any order."""
    counts, orders = counts_of(512), ("1f1b",)
    named = plan_cluster(counts, space_of, PlanOptions(time_limit=PATIENCE, orders=orders))
    free = plan_cluster(counts, space_of, PlanOptions(time_limit=PATIENCE))
    assert isinstance(named, ClusterPlan)
    assert isinstance(free, ClusterPlan)
    assert named.plan.winner.origin == "1f1b"
    assert named.plan.winner.candidate.chunks == 1
    assert named.orders == (orders if named.status is not Status.OPTIMAL else ("1f1b",))
    assert named.lower_bound <= free.value <= named.value
    assert free.orders == ()
