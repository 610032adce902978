"""PipeMesh's numbers of a model on a cluster: its table by hand, and T_DP_crit(q) that follows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from bubbleproof.costs.combinations import Combination, CombinationCosts, TrainingJob, counted
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.papers.pipemesh.mesh_operations import mesh_table
from bubbleproof.papers.planning.paper_choice import PaperInput
from bubbleproof.papers.planning.planner_list import paper_choice
from proofs_tests.planners.small_models import small_file

# A layer of the model: four squares of 256 (as many key heads as heads), three products of 256 by
# 512 and two norms; embedding and head have 1000 words each, padded to 1024, the head a norm.
LAYER = 4 * 256**2 + 3 * 256 * 512 + 2 * 256
END = 1024 * 256 + 256


def file_of(tmp_path: Path, link: int = 10, chunks: int = 1) -> ClusterFile:
    plan = f"chunks = [{chunks}]"
    return small_file(tmp_path, plan, cards=4, memory="128 MiB", link=f"{link} GB/s")


def at(training: TrainingJob, scope: str = "none", data: int = 2) -> CombinationCosts:
    found = counted(
        training,
        Combination(tensor=1, data=data, pipeline=4 // data, micro_batch=1, zero=1, scope=scope),
    )
    assert isinstance(found, CombinationCosts)
    assert not found.reason
    return found


def test_the_table_is_that_of_the_model(tmp_path: Path) -> None:
    training = file_of(tmp_path).training
    table = mesh_table(training, at(training))
    assert (table["parameters"], table["replicas"]) == (4 * LAYER, 2)
    # Half of all bytes of gradients and weights leave a card of two, on the rank with the most:
    # four layers and an end.
    runs, rate = training.cluster.runs, Fraction(training.cluster.constants["gradient"])
    moved = Fraction(runs.reduced + runs.gathered, 2) * (4 * LAYER + END)
    each = moved / (rate * 1000) / 2  # bytes of a microsecond; gathering and reducing alike
    assert isinstance(table["communication"], int)
    assert abs(table["communication"] - each) < 1 + each / 1000
    operations = {one["name"]: one for one in table["operations"]}  # type: ignore[attr-defined]  # a list
    assert {"norm 1", "query", "key", "value", "norm 2", "up"} <= operations.keys()
    assert operations["query"]["activation"] == 2 * 256 * 256
    assert {one["count"] for one in operations.values()} == {4}


def test_what_is_recomputed_anyway_or_shared_by_none_is_left_out(tmp_path: Path) -> None:
    training = file_of(tmp_path).training
    assert "operations" not in mesh_table(training, at(training, scope="full"))
    assert mesh_table(training, at(training, data=1)) == {}


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_critical_communication_acts(tmp_path: Path, chunks: int) -> None:
    exposed: dict[int, int] = {}
    for link in (1, 10, 100):
        file = file_of(tmp_path, link, chunks)
        one = at(file.training)
        table = mesh_table(file.training, one)
        space = deployed_space(file, one)
        found = paper_choice("pipemesh", PaperInput(space=space, table=table))
        assert found.run is not None
        assert found.run.pipeline.choices.sharding is not None
        exposed[link] = int(str(found.choice["exposed"]))
        communication = table["communication"]
        assert isinstance(communication, int)
        each = -(-communication // chunks)
        # Eq. 2: the first chunk's gathers and the last one's reductions are never hidden.
        assert exposed[link] >= 2 * each
        if chunks == 1:
            assert exposed[link] == 2 * each
        assert found.run.ticks >= found.run.measured.makespan + 2 * each
    assert exposed[1] > exposed[10] > exposed[100] > 0
