"""Decoders of transformers: cut, replayed, changed by hand, and refused where that cannot be.

The library itself is the second route: an uncut model of the same seed has the losses that the
replay reports.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from bubbleproof.reference_exec.models import hf_decoder
from bubbleproof.reference_exec.models.hf_config import read_config
from bubbleproof.reference_exec.models.hf_decoder import cut, hf_model, words
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from proofs_tests.reference_exec import model_table
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.reference_exec.model_table import SIZES
from proofs_tests.sized import sized

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="transformers is not installed"
)

CONFIGS = {
    **model_table.CONFIGS,
    "bert": {key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
    "qwen2": {**SIZES, "use_sliding_window": True, "sliding_window": 2, "max_window_layers": 2},
}
Write = Callable[..., ModelSpec]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(kind: str, changes: str = "", **more: Any) -> ModelSpec:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"model_type": kind, **CONFIGS.get(kind, {})}), "utf-8")
        return ModelSpec(kind="own", factory=f"hf:{path}{changes}", **more)

    return write


@pytest.mark.parametrize(
    "kind", sized(["mixtral"], full=["gpt2", "mixtral", "llama", "qwen2", "qwen3"])
)
@pytest.mark.parametrize("dtype", sized(["float64"], full=["float64", "float32", "bfloat16"]))
def test_a_replay_keeps_its_promises(written: Write, kind: str, dtype: str) -> None:
    spec = written(kind, dtype=dtype)
    report = run(family_case("zb-h1", p=4, m=3), spec)
    assert report.failures == ()
    # every linear leaves its weight's gradient to W, GPT-2's Conv1D too; experts are no linears
    matrices = {"gpt2": 4, "mixtral": 4}.get(kind, 7)
    assert report.weight_backward[0].startswith(f"stage 0: W makes {matrices} of ")


def test_the_loss_is_that_of_the_uncut_model(written: Write) -> None:
    spec = written("qwen2", seed=5, layers=(1, 3))
    report = run(family_case("1f1b", p=2, m=3), spec)
    torch.manual_seed(5)
    # it takes a second to load: not while tests are collected
    transformers: Any = importlib.import_module("transformers")
    config = transformers.CONFIG_MAPPING["qwen2"](**CONFIGS["qwen2"])
    whole = transformers.AutoModelForCausalLM.from_config(config).double()
    losses = []
    for microbatch in range(3):
        given, target = words(spec, 37, microbatch, 0)
        logits = whole(input_ids=given).logits
        losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()))
    assert report.loss == pytest.approx(torch.stack(losses).mean().item(), rel=1e-6)
    assert len({loss.item() for loss in losses}) == 3


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [(4, 4, (1, 1, 1, 1)), (6, 4, (1, 2, 2, 1)), (7, 4, (2, 2, 2, 1)), (5, 4, (1, 2, 1, 1))],
)
def test_what_is_left_over_goes_to_the_middle(
    layers: int, stages: int, expected: tuple[int, ...]
) -> None:
    spec = ModelSpec(kind="own", factory="hf:x.json").on(stages)
    assert sum(expected) == layers
    found = cut(spec, layers)
    assert sorted(found) == sorted(expected)
    assert found[-1] == min(found)


def test_a_model_is_made_narrower_by_its_rule(written: Write, tmp_path: Path) -> None:
    given = read_config(written("llama", ",scale=2,num_hidden_layers=3,vocab_size=20").factory)
    # heads of 16 / 4 = 4 stay 4, the least; so hidden stays 16 and inner units 24
    assert given.config.hidden_size == 16
    assert given.config.num_hidden_layers == 3
    assert given.config.vocab_size == 20
    path = tmp_path / "wide.json"
    more = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000}
    path.write_text(json.dumps({"model_type": "llama", **SIZES, **more}), "utf-8")
    wide = read_config(f"hf:{path},scale=16")
    # a head of 1024 / 16 = 64; hidden 4 * 64; inner 11008 * 256 / 4096 = 688 = 86 * 8
    assert (wide.config.hidden_size, wide.config.intermediate_size) == (256, 688)
    assert wide.config.num_key_value_heads == 2
    assert wide.config.vocab_size == 256
    assert "hidden_size is 256, the file has 4096" in wide.notes


def test_what_is_not_as_the_file_has_it_is_said(written: Write) -> None:
    report = run(family_case("1f1b", p=2, m=2), written("gpt2", ",vocab_size=9"))
    notes = "\n".join(report.model_notes)
    assert "vocab_size is 9, the file has 37" in notes
    assert "pdrop" not in notes  # GPT-2's dropout stays on
    assert "the head has a matrix of its own, the configuration ties it" in notes
    # a file that asks for nothing of this is run as it is
    assert read_config(written("qwen3").factory).notes == ()


@pytest.mark.parametrize(
    ("kind", "changes", "stages", "message"),
    [
        ("llama", "", 5, r"has 4 layers for 5 stages; give it more .*num_hidden_layers=5"),
        ("llama", ",hiden_size=8", 2, "got 'hiden_size=8' \\(did you mean 'hidden_size'"),
        ("llama", ",scale=0", 2, "scale must be a whole number, 1 or more, got 0"),
        ("llama", ",hidden_size=18", 2, r"transformers refuses it: .*\(18\) is not a multiple"),
        ("lama", "", 2, "model_type 'lama' is not one of .* .did you mean 'llama'"),
        ("bert", "", 2, "transformers cannot build it|has none of layers, h"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_line(
    written: Write, kind: str, changes: str, stages: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        hf_model(written(kind, changes).on(stages))
    assert "\n" not in str(caught.value)


def test_stages_that_are_not_the_uncut_model_are_refused(
    written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if positions were added again in every stage
    monkeypatch.setattr(hf_decoder._Nothing, "forward", lambda *_: torch.ones(()))
    with pytest.raises(ValueError, match="GPT2LMHeadModel cut by layers gives other logits than"):
        hf_model(written("gpt2", seed=77).on(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no JSON"),
        ("[]", 'expected a configuration of transformers with its "model_type"'),
        (
            '{"model_type": "llama", "hiden_size": 8}',
            "unknown key 'hiden_size' .did you mean",
        ),
    ],
)
def test_files_that_are_no_configuration_are_refused(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_config(f"hf:{path}")


def test_a_cut_that_is_not_the_models_is_refused(written: Write) -> None:
    spec = written("llama", layers=(1, 2)).on(2)
    with pytest.raises(ValueError, match="has 4 layers, --layers 1,2 are 3"):
        hf_model(spec)


def test_without_the_library_the_line_that_installs_it_is_said(
    written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = written("llama")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"run: pip install .bubbleproof\[models\]"):
        read_config(spec.factory)
