"""Slices of a model's samples: every share is whole, whatever layers a stage has."""

from __future__ import annotations

from math import lcm
from pathlib import Path

import pytest

from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.deployed_content import deployments
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.costs.cluster_cases import CARDS, MODEL, cluster_layers
from proofs_tests.costs.test_cluster_times import ONE

PLAN = """[plan]
tensor = [1]
pipeline = [2, 4]
micro_batch = [1]
zero = [1]
scope = ["none", "full"]
"""
SHAPES = """slices = {slices}
chunks = [1, 2]
placements = ["loop", "wave"]
backward = ["whole", "split", "mixed"]
"""


@pytest.mark.parametrize("slices", [[1], [2, 4], [1, 3, 5], [7], [64, 2]])
def test_every_slice_of_every_shape_has_a_whole_share(slices: list[int]) -> None:
    file = cluster_file_of_text(SMALL + PLAN + SHAPES.format(slices=slices), name="sliced")
    seen = set()
    for one in deployments(file, all_counted(file)).deployed:
        for candidate in one.space.candidates():
            if candidate.layers == ():  # 4 layers on 8 stages
                continue
            found = shaped(one.space, candidate).pipeline
            assert found.num_slices == candidate.slices
            seen.add((candidate.slices, candidate.chunks, candidate.backward))
    assert len(seen) >= len(slices) * (1 + 1) * (1 + 1)


@pytest.mark.parametrize("slices", [(2, 4), (3, 5), (64,)])
def test_the_numbers_are_the_nearest_that_divide(slices: tuple[int, ...]) -> None:
    shares = lcm(*slices)
    fine, coarse = (
        cluster_layers(MODEL, ONE, CARDS, NamedCuts(), shares=each) for each in (1, shares)
    )
    ends = [
        (getattr(fine.layers, part), getattr(coarse.layers, part)) for part in ("embedding", "head")
    ]
    for one, other in [(fine.layers.runs[0][0], coarse.layers.runs[0][0]), *ends]:
        for name in ("forward", "input_backward", "weight_backward", "backward", "activation"):
            assert getattr(other, name) % shares == 0
        for name in ("forward", "input_backward", "weight_backward"):
            assert abs(getattr(one, name) - getattr(other, name)) <= shares / 2 + 1
        assert 0 <= other.activation - one.activation < shares
        assert other.static == one.static
    assert 0 <= coarse.message - fine.message < shares
    assert coarse.message % shares == 0


def test_a_plan_of_a_model_runs_in_slices(command: Run, tmp_path: Path) -> None:
    folder = tmp_path
    shapes = "slices = [2, 4]\nchunks = [1, 2]\nbackward = ['whole', 'split']\n"
    text = SMALL + PLAN.replace("[2, 4]", "[2]").replace('"none", "full"', '"none"') + shapes
    (folder / "p.toml").write_text(text)
    words = ("-o", folder / "out", "--certificate", folder / "c.json", "--work", 0.5, "--json")
    answer = command("plan", folder / "p.toml", *words)
    assert answer.status in (0, 3), answer.err
    verified = command("verify", folder / "out", "--certificate", folder / "c.json")
    assert verified.status in (0, 3), verified.err
    assert "nothing is proved" not in verified.out
