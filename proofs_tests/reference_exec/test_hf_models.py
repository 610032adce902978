"""Models of transformers: cut, replayed, changed by hand, and refused where that cannot be.

The library itself is the second route: the uncut model of the same seed has the losses and the
gradients of the stages, bit for bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import bubbleproof as bp
from bubbleproof.costs.known_models import CONFIGURATIONS
from bubbleproof.reference_exec.models import hf_stages
from bubbleproof.reference_exec.models.hf_config import read_config
from bubbleproof.reference_exec.models.hf_model import draw, hf_model, next_word, words
from bubbleproof.reference_exec.models.hf_stages import HfStage, even_cut
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.parcels import called
from bubbleproof.reference_exec.plans.training import Training
from proofs_tests.reference_exec import hf_objects, model_table
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.reference_exec.model_table import SIZES
from proofs_tests.sized import sized

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="transformers is not installed"
)

TOWER = {"depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "patch_size": 2,
         "out_hidden_size": 16, "fullatt_block_indexes": [1], "window_size": 16}  # fmt: skip
CONFIGS = {
    **model_table.CONFIGS,
    "bert": {key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
    "qwen2": {**SIZES, "use_sliding_window": True, "sliding_window": 2, "max_window_layers": 2},
    "gemma2": {**SIZES, "head_dim": 4, "sliding_window": 2, "tie_word_embeddings": True},
    "gemma3": {"text_config": {**SIZES, "head_dim": 4, "sliding_window": 2}, "vision_config": {}},
    "granite": {**SIZES, "embedding_multiplier": 12.0, "residual_multiplier": 0.25},
    "jamba": {**SIZES, "attn_layer_period": 4, "attn_layer_offset": 1, "mamba_d_state": 8,
              "num_experts": 4, "use_mamba_kernels": False},
    "t5": {"d_model": 16, "d_ff": 24, "d_kv": 4, "num_heads": 4, "num_layers": 2, "vocab_size": 37},
    "qwen2_5_vl": {
        "text_config": {**SIZES, "rope_parameters": {
            "rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 0]}},
        "vision_config": TOWER, "image_token_id": 30, "video_token_id": 31,
        "vision_start_token_id": 32,
    },
}  # fmt: skip
ROUTED = ",output_router_logits=true"
Write = Callable[..., ModelSpec]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(kind: str, changes: str = "", **more: Any) -> ModelSpec:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"model_type": kind, **CONFIGS.get(kind, {})}), "utf-8")
        return ModelSpec(kind="own", factory=f"hf:{path}{changes}", **more)

    return write


def uncut(spec: ModelSpec) -> Any:
    """The library's model with the weights that the stages have."""
    transformers: Any = sys.modules["transformers"]
    config = read_config(spec.factory, spec.sequence).config
    whole = transformers.AutoModelForCausalLM.from_config(config)
    draw(whole, spec.seed)
    return whole.double()


@pytest.mark.parametrize(
    "kind",
    sized(["mixtral", "t5"], full=["gpt2", "mixtral", "llama", "qwen2", "gemma2", "jamba", "t5"]),
)
@pytest.mark.parametrize("dtype", sized(["float64"], full=["float64", "float32", "bfloat16"]))
def test_a_replay_keeps_its_promises(written: Write, kind: str, dtype: str) -> None:
    spec = written(kind, ROUTED if kind == "mixtral" else "", dtype=dtype)
    report = run(family_case("zb-h1", p=4, m=3), spec)
    assert report.failures == ()
    # every linear leaves its weight's gradient to W, GPT-2's Conv1D too; experts are no linears
    matrices = {"gpt2": 4, "mixtral": 4, "jamba": 9, "t5": 6}.get(kind, 7)
    assert report.weight_backward[0].startswith(f"stage 0: W makes {matrices} of ")


@pytest.mark.parametrize("kind", ["qwen2", "gemma2", "granite", "mixtral"])
@pytest.mark.parametrize("stages", [2, 4])
def test_losses_and_gradients_are_those_of_the_uncut_model(
    written: Write, kind: str, stages: int
) -> None:
    spec = written(kind, ROUTED if kind == "mixtral" else "", seed=5).on(stages)
    model = hf_model(spec)
    whole = uncut(spec)
    given, target = words(spec, whole.config, 1, 0)
    result = whole(input_ids=given)
    auxiliary = getattr(result, "aux_loss", None)
    expected = next_word(result.logits, target)
    if auxiliary is not None:
        expected = expected + whole.config.router_aux_loss_coef * auxiliary
    torch.autograd.backward(expected)
    value: object = given
    for stage in model.stages:
        value = called(stage.double(), value)
    loss = model.loss(value, target)
    assert torch.equal(loss, expected)
    torch.autograd.backward(loss)
    wanted = {name: each.grad for name, each in whole.named_parameters()}
    seen = set()
    for stage in model.stages:
        assert isinstance(stage, HfStage)
        for name, parameter in stage.model.named_parameters():
            key = (
                "model.embed_tokens.weight"
                if name == "lm_head.weight" and name not in wanted
                else name
            )
            seen.add(key)
            assert torch.equal(parameter.grad, wanted[key])  # type: ignore[arg-type]  # no None here
    assert seen == wanted.keys()
    held = {id(each): each.numel() for stage in model.stages for each in stage.parameters()}
    assert sum(held.values()) == sum(each.numel() for each in whole.parameters())


def test_weights_do_not_depend_on_the_cut(written: Write) -> None:
    two, four = (hf_model(written("llama").on(stages)).stages for stages in (2, 4))
    longer = hf_model(written("llama", ",num_hidden_layers=6").on(2)).stages
    first = {name: each for stage in two for name, each in stage.named_parameters()}
    for stage in (*four, *longer):
        for name, parameter in stage.named_parameters():
            assert name not in first or torch.equal(parameter, first[name])


def test_a_tower_stays_in_front_and_is_not_cut(written: Write) -> None:
    case = family_case("1f1b", p=2, m=2)
    assert run(case, written("qwen2_5_vl", sequence=6)).failures == ()
    first, second = hf_model(written("qwen2_5_vl", sequence=6).on(2)).stages
    assert any("visual" in name for name, _ in first.named_parameters())
    assert not any("visual" in name for name, _ in second.named_parameters())
    with pytest.raises(
        ValueError, match=r"ForConditionalGeneration cut behind model.visual.blocks.0"
    ):
        hf_model(written("qwen2_5_vl", sequence=6, layers=(1, 5)).on(2))


def test_a_model_of_the_library_is_taken_as_it_is() -> None:
    spec = ModelSpec(kind="own", factory="proofs_tests.reference_exec.hf_objects:build")
    report = run(family_case("1f1b", p=2, m=3), spec)
    assert report.failures == ()


def test_a_model_of_the_library_keeps_its_owners_data_and_loss() -> None:
    """Beside the model by itself: one forward and backward of each microbatch, and a loss."""
    spec = ModelSpec(kind="own", factory=f"{hf_objects.__name__}:own")
    report = run(family_case("1f1b", p=2, m=3), spec)
    assert report.failures == ()
    whole = hf_objects.build().double()
    expected = []
    for number in range(3):
        given, target = hf_objects.batch(number)
        logits = whole(**given).logits  # type: ignore[arg-type]  # by name
        expected.append(hf_objects.shifted(logits, target).item() / 3)
    assert report.losses == tuple(expected)


def test_a_model_object_is_taken_as_it_is_and_stays_so() -> None:
    whole = hf_objects.build()
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    made = bp.family("1f1b")(p=2, m=3)
    report = bp.replay(made.pipeline, made.schedule, model=whole)
    assert report.ok, str(report)
    assert all(torch.equal(before[name], value) for name, value in whole.state_dict().items())
    assert all(parameter.grad is None for parameter in whole.parameters())


def test_a_model_that_is_another_when_cut_is_refused() -> None:
    spec = ModelSpec(kind="own", factory=f"{hf_objects.__name__}:counting")
    with pytest.raises(ValueError, match=r"LlamaForCausalLM cut behind .* gives other logits"):
        run(family_case("1f1b", p=2, m=3), spec)
    broken = ModelSpec(kind="own", factory=f"{hf_objects.__name__}:batch")
    with pytest.raises(ValueError, match="failed"):
        run(family_case("1f1b", p=2, m=3), broken)


def test_what_is_asked_for_beside_the_file_is_done(written: Write) -> None:
    for name in ("eager", "sdpa"):
        stages = hf_model(written("llama", f",attention={name}").on(2)).stages
        models: list[Any] = [stage.model for stage in stages]
        assert {model.config._attn_implementation for model in models} == {name}
    assert "vision_config" in CONFIGS["gemma3"]
    part = written("gemma3", ",part=text", sequence=6)
    stages = hf_model(part.on(2)).stages
    assert {type(stage.model).__name__ for stage in stages} == {"Gemma3ForCausalLM"}
    assert run(family_case("1f1b", p=2, m=2), part).failures == ()


@pytest.mark.parametrize("name", ["bloom-176b", "gemma-3-4b"])
def test_a_published_file_is_narrowed_and_cut(name: str) -> None:
    """A width under another name; an image in front, whose projection holds modules."""
    file = f"hf:{CONFIGURATIONS / name}.json,scale=64,num_hidden_layers=2"
    spec = ModelSpec(kind="own", factory=file)
    assert run(family_case("1f1b", p=2, m=2), spec).failures == ()


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("llama", "atention=eager", "got 'atention=eager' \\(did you mean 'attention'"),
        (
            "llama",
            "attention=eagre",
            "attention must be one of .* got 'eagre' \\(did you mean 'eager'",
        ),
        ("llama", "part=text", "part must be one of none of this model, got 'text'"),
        (
            "qwen2_5_vl",
            "part=txt",
            "part must be one of text, vision, got 'txt' \\(did you mean 'text'",
        ),
        ("qwen2_5_vl", "part=vision", "it has no model of type qwen2_5_vl.* that scores words"),
        ("llama", "dtype=bfloat16", "the type is no change of the file.*say --dtype bfloat16"),
    ],
)
def test_a_mistyped_option_is_refused_with_the_nearest(
    written: Write, kind: str, change: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        hf_model(written(kind, f",{change}", sequence=6).on(2))


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [(4, 4, (1, 1, 1, 1)), (6, 4, (1, 2, 2, 1)), (7, 4, (2, 2, 2, 1)), (5, 4, (1, 2, 1, 1))],
)
def test_what_is_left_over_goes_to_the_middle(
    layers: int, stages: int, expected: tuple[int, ...]
) -> None:
    spec = ModelSpec(kind="own", factory="hf:x.json").on(stages)
    assert sum(expected) == layers
    found = even_cut(spec, layers)
    assert sorted(found) == sorted(expected)
    assert found[-1] == min(found)


def test_a_model_is_made_narrower_by_its_rule(written: Write, tmp_path: Path) -> None:
    given = read_config(written("llama", ",scale=2,num_hidden_layers=3,vocab_size=20").factory)
    # heads of 16 / 4 = 4 stay, being less than 16; so hidden stays 16; inner units 24 / 2 = 12, 16
    assert given.config.hidden_size == 16
    assert given.config.intermediate_size == 16
    assert given.config.num_hidden_layers == 3
    assert given.config.vocab_size == 20
    path = tmp_path / "wide.json"
    more = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000,
            "num_attention_heads": 32, "num_key_value_heads": 8}  # fmt: skip
    path.write_text(json.dumps({"model_type": "llama", **SIZES, **more}), "utf-8")
    wide = read_config(f"hf:{path},scale=16")
    # 2 heads of keys and values with 4 queries each; a head of 128 / 16 is 16 at least; hidden
    # 8 * 16; inner 11008 / 16 = 688 = 86 * 8
    assert (wide.config.num_attention_heads, wide.config.num_key_value_heads) == (8, 2)
    assert (wide.config.hidden_size, wide.config.intermediate_size) == (128, 688)
    assert wide.config.vocab_size == 256
    assert "hidden_size is 128, the file has 4096" in wide.notes


def test_experts_windows_and_patterns_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    kinds = {
        "deepseek_v3": {"n_routed_experts": 256, "n_group": 8, "topk_group": 4,
                        "num_experts_per_tok": 8},
        "gemma3_text": {"sliding_window": 1024, "num_hidden_layers": 26},
    }  # fmt: skip
    found = {}
    for kind, more in kinds.items():
        path.write_text(json.dumps({"model_type": kind, **more}), "utf-8")
        found[kind] = read_config(f"hf:{path},scale=16,num_hidden_layers=6", 8).config
    # twice the 8 that are chosen, 2 to each of the 8 groups
    assert found["deepseek_v3"].n_routed_experts == 16
    assert found["gemma3_text"].sliding_window == 4
    assert set(found["gemma3_text"].layer_types) == {"sliding_attention", "full_attention"}


def test_what_is_not_as_the_file_has_it_is_said(written: Write) -> None:
    report = run(family_case("1f1b", p=2, m=2), written("gpt2", ",vocab_size=9"))
    notes = "\n".join(report.model_notes)
    assert "vocab_size is 9, the file has 37" in notes
    assert "pdrop" not in notes  # GPT-2's dropout stays on
    # a file that asks for nothing of this is run as it is, and its head stays tied
    assert read_config(written("qwen3").factory).notes == ()


def test_kinds_of_layers_that_are_lost_are_said(written: Write) -> None:
    # attention in layer 1 of 4, a mixture in every second layer from 1 on: 0 is neither
    (told,) = (
        n for n in hf_model(written("jamba", ",num_hidden_layers=1").on(1)).notes if "kind" in n
    )
    assert told.startswith("1 layers have 1 of the 3 kinds of layer of hf:")
    assert told.endswith("num_hidden_layers=4 has all")
    assert not any(
        "kind" in n for n in hf_model(written("llama", ",num_hidden_layers=2").on(2)).notes
    )


def test_a_head_steps_with_the_sum_of_its_ends(written: Write) -> None:
    training = Training(optimizer="adam", steps=2)
    report = run(family_case("interleaved", p=2, m=4, v=2), written("gemma2"), training=training)
    assert report.failures == ()


@pytest.mark.parametrize(
    ("kind", "changes", "stages", "message"),
    [
        ("llama", "", 5, r"has 4 layers for 5 stages; give it more .*num_hidden_layers=5"),
        ("llama", ",hiden_size=8", 2, "got 'hiden_size=8' \\(did you mean 'hidden_size'"),
        ("llama", ",scale=0", 2, "scale must be a whole number, 1 or more, got 0"),
        ("llama", ",hidden_size=18", 2, r"transformers refuses it: .*\(18\) is not a multiple"),
        ("lama", "", 2, "model_type 'lama' is not one of .* .did you mean 'llama'"),
        ("llama", ",vocab_size=400000000", 2, "at most 4294967296: make it smaller"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_line(
    written: Write, kind: str, changes: str, stages: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        hf_model(written(kind, changes).on(stages))
    assert "\n" not in str(caught.value)


def _doubled(wire: Any, places: Any, args: Any, named: Any) -> Any:
    wire.received = [(place, 2 * tensor) for place, tensor in wire.received]
    return RIGHT(wire, places, args, named)


RIGHT = hf_stages._with_received


@pytest.mark.parametrize(
    ("name", "wrong"), [("_with_received", _doubled), ("_routed", lambda *_: [])]
)
def test_stages_that_are_not_the_uncut_model_are_refused(
    written: Write, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any
) -> None:
    # what was received comes in twice as large; the routers before are forgotten
    monkeypatch.setattr(hf_stages, name, wrong)
    with pytest.raises(
        ValueError, match=r"cut behind model.layers.1 gives other logits than uncut"
    ):
        hf_model(written("mixtral", ROUTED, seed=77).on(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no JSON"),
        ("[]", 'expected a configuration of transformers with its "model_type"'),
        ('{"_class_name": "StableDiffusionPipeline"}', 'with its "model_type"'),
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


def test_keys_of_a_file_that_nobody_knows_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "llama", **SIZES, "auto_map": {}, "hiden_size": 8}), "utf-8"
    )
    found = read_config(f"hf:{tmp_path}")  # the folder will do
    assert (found.config.hidden_size, found.notes) == (16, ())


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
