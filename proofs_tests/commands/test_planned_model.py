"""What is replayed of a plan: the planned model, made small by its rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.commands.replaying.replay import scaled, small_cut, with_planned_model
from bubbleproof.commands.replaying.replay_options import ModelOptions, ReplayRequest
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.transformer import Transformer
from bubbleproof.hand_over.handed import PlannedModel
from proofs_tests.commands.conftest import Run

ROOT = Path(__file__).resolve().parents[2]
GROUPED = Transformer(
    layers=29,
    hidden=4096,
    heads=32,
    kv_heads=8,
    feed_forward=14336,
    vocabulary=128256,
    gated=True,
    norm="rms",
)


def planned(model: Transformer, *layers: int) -> PlannedModel:
    return PlannedModel(model=model, deployment=Deployment(), layers=layers, samples=1)


def test_a_model_keeps_its_kind_its_cut_and_its_queries_to_a_key() -> None:
    found = scaled(planned(GROUPED, 5, 10, 10, 4), ModelOptions(dtype="float32"))
    # 32 / 8 = 4 queries to each of two heads of keys: 8 heads of 4; layers divided by 5
    assert found == ModelOptions(
        model="llama",
        hidden=32,
        layers="1,2,2,1",
        heads=8,
        kv_heads=2,
        vocabulary=64,
        dtype="float32",
    )
    plain = replace(GROUPED, gated=False, norm="layer", kv_heads=0, vocabulary=40, tied=True)
    other = scaled(planned(plain, 2, 2), ModelOptions())
    assert (other.model, other.heads, other.vocabulary, other.tied) == ("transformer", 2, 40, True)
    assert not scaled(planned(plain, 4), ModelOptions()).tied  # one stage has both ends


@pytest.mark.parametrize("layers", [(1,), (2, 1), (3, 3), (126, 1), (7, 8, 8, 7)])
def test_no_stage_is_empty_and_none_has_more_than_two(layers: tuple[int, ...]) -> None:
    found = small_cut(layers)
    assert all(1 <= count <= 2 for count in found)
    pairs = zip(layers, found, strict=True)
    assert [count for _, count in sorted(pairs)] == sorted(found)  # none is overtaken


def test_a_plans_folder_is_replayed_with_its_model(command: Run, tmp_path: Path) -> None:
    plan = ROOT / "examples" / "cluster" / "llama-13b-64xA100.toml"
    made = command("plan", plan, "--work", "1", "-o", tmp_path)
    assert made.status == 0
    request = with_planned_model(ReplayRequest(schedule=[str(tmp_path)]))
    assert request.model.model == "llama"
    assert request.model.vocabulary == 64
    asked = ReplayRequest(schedule=[str(tmp_path)], model=ModelOptions(model="mlp"))
    assert with_planned_model(asked) is asked
    order = ReplayRequest(schedule=["1f1b", "p=2", "m=2"])
    assert with_planned_model(order) is order
    found = command("replay", str(tmp_path))
    assert found.status == 0
    assert "llama-2-13b is replayed small: llama, layers 2,2, hidden 8" in found.err
