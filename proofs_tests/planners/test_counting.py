"""What is known of deployments that there was no time to count."""

from __future__ import annotations

from math import inf

import pytest

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import NOT_COUNTED, NoClusterPlan
from bubbleproof.planners.counting import UncountedCombination, counted_within
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.solvers import Status


def job(memory: str, model: str = "llama-2-13b", more: str = "") -> ClusterFile:
    return cluster_file_of_text(
        f'[model]\nname = "{model}"\n[cluster]\ncard = "h100"\ncards = 8\nreserve = 0\n'
        f'memory = "{memory}"\n[batch]\nsamples = 8\n{more}',
        name="job",
    )


def uncounted(file: ClusterFile) -> NoClusterPlan:
    """The answer where one deployment alone was counted."""
    counts = counted_within(file, 0.0)
    assert sum(isinstance(one, CombinationCosts) for one in counts) <= 1
    found = plan_cluster(counts, lambda one: deployed_space(file, one), PlanOptions(work=1.0))
    assert isinstance(found, NoClusterPlan)
    return found


def test_none_fits_where_the_state_of_the_model_is_more_than_all_cards() -> None:
    """13,015,864,320 parameters of 18 bytes on 8 cards: 29,285,694,720 bytes of each, 27.3 GiB."""
    found = uncounted(job("27 GiB"))
    assert found.status is Status.INFEASIBLE
    told = "does not fit: the state of the model is 27.274"
    assert sum(row.reason.startswith(told) for row in found.rows) >= len(found.rows) - 1
    found = uncounted(job("28 GiB"))
    assert found.status is Status.UNKNOWN
    assert any(row.reason == NOT_COUNTED for row in found.rows)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("llama-2-7b", ""),
        ("gemma-2-9b", ""),
        ("deepseek-v2-lite", "[plan]\nexpert = [1, 2, 4, 8]\n"),
        ("llama-2-7b", '[plan]\nprecision = ["bf16", "bf16-gradients"]\n'),
    ],
)
def test_no_deployment_holds_less_than_its_share_of_the_state(model: str, more: str) -> None:
    """By all of them counted: on a card on which any fits, the state alone is no reason."""
    counts = counted_within(job("2000 GiB", model, more), inf)
    least = min(one.needed for one in counts if isinstance(one, CombinationCosts))
    fits = counted_within(job(f"{least} B", model, more), 0.0)
    late = [one for one in fits if isinstance(one, UncountedCombination)]
    assert late
    assert {one.reason for one in late} == {""}


def test_open_deployments_are_counted_once() -> None:
    """What ended the search names as many as the rows have, those without numbers among them."""
    file = job("28 GiB")
    counts = counted_within(file, 0.0)
    found = plan_cluster(counts, lambda one: deployed_space(file, one), PlanOptions(time_limit=1.0))
    num_open = sum(row.status is Outcome.UNKNOWN for row in found.rows)
    assert isinstance(found, NoClusterPlan)
    assert num_open > sum(isinstance(one, CombinationCosts) for one in counts)
    assert f": {num_open:,} deployments are open" in found.reason
