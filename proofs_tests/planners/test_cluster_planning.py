"""The plan of a model on a cluster: against every deployment planned for itself; its bound."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from threading import Event

import pytest

from bubbleproof.costs.combinations import (
    CombinationCosts,
    ForbiddenCombination,
    Lists,
    combinations,
    counted,
    legal,
)
from bubbleproof.formats.clusters.deployed_content import deployed_content
from bubbleproof.formats.problem_toml import problem_of
from bubbleproof.planners import Plan, PlanOptions, deployment_search, plan, plan_search
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.looks import CandidateSearch, SearchOutcome
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.planners.search_budget import SearchBudget
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from proofs_tests.costs.cluster_cases import TRAINING, all_counted, with_memory
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

LISTS = Lists(tensor=(1, 2), pipeline=(2, 4), micro_batch=(1, 2), zero=(1,), scope=("none", "full"))
SHAPES = {"chunks": [1, 2], "backward": ["whole", "split"]}


def space_of(one: CombinationCosts) -> PlanSpace:
    content = deployed_content(
        one.numbers,
        ranks=one.combination.pipeline,
        microbatches=one.microbatches,
        name="small",
        plan=SHAPES,
    )
    space = problem_of(content, name="small").plan
    assert space is not None
    return space


@pytest.mark.parametrize(
    ("mebibytes", "layers"), sized([(128, 5)], full=[(128, 4), (104, 4), (128, 5)])
)
def test_nothing_is_lost_by_pruning(mebibytes: int, layers: int) -> None:
    """Each deployment planned for itself, without a thought for the others: the same best.

    Five layers are cut into two and into four stages that are uneven.
    """
    training = with_memory(mebibytes << 20)
    model, kinds = training.model.with_changes(layers=layers), ("even", "balanced")
    counts = all_counted(replace(training, model=model, rule=NamedCuts(kinds=kinds)), LISTS)
    assert all(one in legal(counts) for one in counts if one.combination.micro_batch == 1)
    found = plan_cluster(counts, space_of, PlanOptions(time_limit=PATIENCE))
    alone = {}
    for one in legal(counts):
        each = plan(space_of(one), PlanOptions(time_limit=PATIENCE))
        if isinstance(each, Plan):
            alone[one.combination] = each.value + one.numbers.step_end
    assert found.status is Status.OPTIMAL
    assert isinstance(found, ClusterPlan)
    assert found.value == min(alone.values())
    assert found.plan.verdict.ok
    for row in found.rows:
        if row.combination in alone:
            assert row.bound <= alone[row.combination]
        else:
            assert row.status in (Outcome.INFEASIBLE, Outcome.NOT_LEGAL)


def test_what_does_not_fit_has_no_schedule() -> None:
    """By the joint planner's own word, which does not know the combination's count."""
    counts = legal(all_counted(with_memory(88 << 20), LISTS))
    full = [one for one in counts if one.reason]
    assert full
    for one in full:
        assert plan(space_of(one), PlanOptions(time_limit=PATIENCE)).status is Status.INFEASIBLE


def until_the_first() -> PlanOptions:
    """Options of a search that is stopped when it tells of what it found first."""
    stop = Event()
    return PlanOptions(time_limit=PATIENCE, stop=stop, tell=lambda _: stop.set())


def test_the_nearest_memory_is_enough_and_one_byte_less_is_not() -> None:
    none = plan_cluster(all_counted(with_memory(72 << 20), LISTS), space_of)
    assert none.status is Status.INFEASIBLE
    assert isinstance(none, NoClusterPlan)
    (nearest,) = none.nearest
    for memory, is_enough in ((nearest.memory, True), (nearest.memory - 1, False)):
        counts = all_counted(with_memory(memory), LISTS)
        found = plan_cluster(counts, space_of, until_the_first())
        assert isinstance(found, ClusterPlan) is is_enough


def test_a_search_that_is_stopped_has_the_best_so_far() -> None:
    found = plan_cluster(all_counted(TRAINING, LISTS), space_of, until_the_first())
    assert found.reason == "interrupted: the best so far"
    assert isinstance(found, ClusterPlan)
    assert found.value == found.plan.value + found.step_end
    assert found.plan.verdict.ok


def test_reasons_name_the_number() -> None:
    lists = Lists(
        tensor=(1,), data=(1, 4), pipeline=(1, 4), micro_batch=(3, 1), zero=(0,), scope=("none",)
    )
    roomy = with_memory(256 << 20)
    found = {str(one.combination): one.reason for one in all_counted(roomy, lists)}
    samples = "8 samples are not divisible by data x micro_batch"
    assert found == {
        "t=1 d=1 p=4 b=3 zero=0 none": f"{samples} = 3; use samples = 9",
        "t=1 d=1 p=4 b=1 zero=0 none": "",
        "t=1 d=4 p=1 b=3 zero=0 none": f"{samples} = 12; use samples = 12",
        "t=1 d=4 p=1 b=1 zero=0 none": "",
    }
    only = Lists(tensor=(3,), data=(1,), pipeline=(1,))
    with pytest.raises(ValueError, match="is the 4 cards"):
        combinations(TRAINING, only)
    many = Lists(micro_batch=tuple(range(1, 10_001)))
    with pytest.raises(ValueError, match="at most 100000 combinations, these are"):
        combinations(TRAINING, many)
    deep = Lists(
        tensor=(1,), data=(1,), pipeline=(4,), micro_batch=(1,), zero=(0,), scope=("full",)
    )
    (one,) = combinations(TRAINING, deep)
    shallow = replace(TRAINING, model=TRAINING.model.with_changes(layers=6))
    told = counted(shallow, one)
    assert told.reason == "pipeline must divide layers 6, got 4; use pipeline = 2"
    assert isinstance(told, ForbiddenCombination)


def test_a_look_has_the_time_of_its_preparation_or_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def look(one: CandidateSearch) -> SearchOutcome:
        asked.append(one.options.time_limit)
        return SearchOutcome()

    def limits(needed: float) -> list[float]:
        asked.clear()
        monkeypatch.setattr(plan_search, "preparation", lambda _: needed)
        planning._close(planning.open_ones[0], most=1 << 50, share=1.0)
        return asked

    monkeypatch.setattr(deployment_search, "look", look)
    monkeypatch.setattr(time, "thread_time", time.perf_counter)  # as if nothing else ran
    counts, options = all_counted(TRAINING, LISTS), PlanOptions(time_limit=PATIENCE)
    budget = SearchBudget.of(PATIENCE, None, options.stop)
    planning = deployment_search.DeploymentSearch(counts, space_of, options, budget)
    planning._begin()
    assert limits(0.4 * PATIENCE)
    assert min(asked) >= 0.4 * PATIENCE
    assert limits(2 * PATIENCE) == []


def test_of_one_replica_one_level_of_zero_is_gone_through() -> None:
    # t = 1 on 4 cards: d = 1 shares nothing at any level, d = 2 and d = 4 share at 1, 2 and 3.
    lists = Lists(tensor=(1,), micro_batch=(1,), zero=(3, 1, 2), scope=("full",))
    levels = [(one.data, one.zero) for one in combinations(TRAINING, lists)]
    assert sorted(levels) == [(1, 1), *product((2, 4), (1, 2, 3))]
    shared = Lists(tensor=(1,), data=(1,), micro_batch=(1,), scope=("full",), context=(2,))
    assert {one.zero for one in combinations(TRAINING, shared)} == {0, 1, 2, 3}
