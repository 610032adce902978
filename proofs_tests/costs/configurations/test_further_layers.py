"""Towers, modules for further tokens, frozen layers: against published files, and torch's counter.

``IN_FILES``: the numbers in the weights' files, by the Hugging Face listing of 2026-09 (of
DeepSeek-V3 those of BF16 and F8_E4M3, the others being scales). They hold a module's copies of the
embedding and the head, and of GLM-4.5 an expert's bias for each choice, which is no parameter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.costs import Deployment, layer_flops, layer_saved, parameters
from bubbleproof.costs.configurations.config_file import read_configuration
from bubbleproof.costs.further_layers import with_frozen, with_modules, with_patches
from bubbleproof.costs.model_costs import model_costs
from bubbleproof.costs.weights import layer_weights
from bubbleproof.formats.clusters.model_toml import read_model
from proofs_tests.costs.configurations.published import configuration

IN_FILES = {
    "deepseek-v3": 3_918_786_560 + 680_571_043_840,
    "glm-4.5-air": 110_468_824_832 - 46 * 128,  # layers with experts, a module's among them
    "glm-4.5": 358_337_791_296 - 90 * 160,
}
TEXT = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128,
    "num_key_value_heads": 2, "intermediate_size": 96,
}  # fmt: skip
QWEN = {"depth": 4, "num_heads": 4, "patch_size": 14, "spatial_merge_size": 2}
TOWERS: dict[str, dict[str, Any]] = {
    "gemma3": {
        "model_type": "gemma3", "text_config": {**TEXT, "model_type": "gemma3_text"},
        "mm_tokens_per_image": 16,
        "vision_config": {
            "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
            "intermediate_size": 80, "patch_size": 14, "image_size": 112, "vision_use_head": False,
        },
    },
    "qwen2_vl": {
        "model_type": "qwen2_vl", "text_config": {**TEXT, "model_type": "qwen2_vl_text"},
        "vision_config": {**QWEN, "embed_dim": 48, "hidden_size": 64, "mlp_ratio": 2},
    },
    "qwen2_5_vl": {
        "model_type": "qwen2_5_vl", "text_config": {**TEXT, "model_type": "qwen2_5_vl_text"},
        "vision_config": {
            **QWEN, "hidden_size": 48, "intermediate_size": 80, "out_hidden_size": 64,
            "window_size": 112, "fullatt_block_indexes": [1, 3],
        },
    },
    "qwen2_audio": {
        "model_type": "qwen2_audio", "text_config": {**TEXT, "model_type": "qwen2"},
        "audio_config": {
            "model_type": "qwen2_audio_encoder", "d_model": 48, "encoder_layers": 3,
            "encoder_attention_heads": 4, "encoder_ffn_dim": 80, "num_mel_bins": 16,
            "max_source_positions": 32,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(IN_FILES))
def test_a_module_has_the_weights_that_the_files_have(name: str) -> None:
    model = read_configuration(configuration(name), with_library=False).model
    copies = 2 * model.vocabulary * model.hidden
    assert parameters(with_modules(model, 1)).total + copies == IN_FILES[name]


def built(transformers: Any, content: dict[str, Any]) -> Any:
    """The model that transformers makes of a file."""
    values = dict(content)
    config = transformers.CONFIG_MAPPING[values.pop("model_type")](**values)
    auto = transformers.AutoModelForCausalLM
    if "vision_config" in values:
        auto = transformers.AutoModelForImageTextToText
    elif "audio_config" in values:
        auto = transformers.AutoModelForSeq2SeqLM
    return auto.from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize("kind", sorted(TOWERS))
def test_a_tower_is_what_transformers_builds(kind: str, tmp_path: Path) -> None:
    """Its parameters, and the FLOPs of one image or clip: patches, blocks and projection."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    content = TOWERS[kind]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    model = built(transformers, content)
    grid, patch = torch.tensor([[1, 16, 16]]), 3 * 2 * 14 * 14
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        if kind == "gemma3":
            model.get_image_features(torch.zeros(1, 3, 112, 112))
        elif kind == "qwen2_audio":
            sound = model.model.audio_tower(torch.zeros(1, 16, 64)).last_hidden_state
            model.model.multi_modal_projector(sound)
        else:
            model.get_image_features(torch.zeros(256, patch), grid)
    shape = read_configuration(f"hf:{path}").model
    assert parameters(shape).total == sum(each.numel() for each in model.parameters())
    if "qwen2" in kind and kind != "qwen2_audio":
        shape = with_patches(shape, 256)
    at = Deployment()
    front = sum(
        layer_flops(layer, at).forward * count for layer, count in shape.layer_runs if layer.tokens
    )
    assert front == counter.get_total_flops()


LLAMA = {**TEXT, "model_type": "llama"}


@pytest.mark.parametrize(
    ("tied", "frozen"), [(False, 0), (False, 1), (True, 1), (False, 2), (True, 2)]
)
def test_frozen_layers_have_the_backward_that_torch_counts(
    tied: bool, frozen: int, tmp_path: Path
) -> None:
    """With the embedding frozen none; with a trained one, as the head is, that for the input."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "tie_word_embeddings": tied}))
    model = built(transformers, {**LLAMA, "tie_word_embeddings": tied})
    parts = [*model.model.layers[:frozen]] + [model.model.embed_tokens] * (frozen > 0 and not tied)
    for each in parts:
        each.requires_grad_(False)
    loss = model(torch.zeros(1, 8, dtype=torch.long)).logits.sum()
    with FlopCounterMode(display=False) as counter:
        loss.backward()
    shape = read_configuration(f"hf:{path}").model
    shape = with_frozen(shape, frozen) if frozen else shape
    costs = model_costs(shape, Deployment(sequence=8))
    assert costs.flops.input_backward + costs.flops.weight_backward == counter.get_total_flops()
    trained = sum(each.numel() for each in model.parameters() if each.requires_grad)
    idle = sum(each.numel() for each in model.parameters() if not each.requires_grad)
    assert costs.state_bytes == 18 * trained + 2 * idle  # weight, gradient, optimizer; weight


def test_a_module_computes_what_its_parts_do() -> None:
    """A layer as the last, a linear of both streams, and the head, by torch's counter."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    shape = read_configuration(configuration("glm-4.5-air"), with_library=False).model
    last, h = shape.layer_runs[-1][0], shape.hidden
    with torch.device("meta"):
        join, head = torch.nn.Linear(2 * h, h), torch.nn.Linear(h, shape.vocabulary)
        with FlopCounterMode(display=False) as counter:
            head(join(torch.zeros(64, 2 * h)))
    assert transformers
    at = Deployment(sequence=64)
    module = with_modules(shape, 2).layer_runs[-1]
    assert module[1] == 2
    more = layer_flops(module[0], at).forward - layer_flops(last, at).forward
    assert more == counter.get_total_flops()
    # In another stage than the embedding it has a copy of that.
    copy = shape.vocabulary * h
    one, two = (layer_weights(module[0], Deployment(pipeline=p)).dense for p in (1, 2))
    assert two - one == copy
    assert layer_saved(module[0], at) > layer_saved(last, at)


def test_a_file_tells_them(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    for name, more, layers, frozen in (
        ("deepseek-v3", "mtp = 2", 63, 0),
        ("gemma-3-4b", 'frozen = "tower"', 63, 28),
        ("llama-3.1-8b", "frozen = 3", 32, 3),
        ("llama-3.1-8b", 'frozen = "all"', 32, 32),
        ("gemma-3-4b", "tower_tokens = 8192", 63, 0),
    ):
        path.write_text(f'[model]\nconfig = "{configuration(name)}"\n{more}\n')
        model, _ = read_model(path)
        assert model.layers == layers
        assert sum(count for kind, count in model.layer_runs if kind.frozen) == frozen
    assert [kind.tokens for kind, _ in model.layer_runs[:3]] == [8192, 8192, 512]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('frozen = "tower"', "needs a tower"),
        ("frozen = 33", "frozen must be at most layers 32, got 33"),
        ("tower_tokens = 8", "it has none"),
    ],
)
def test_what_is_not_there(more: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text(f'[model]\nconfig = "{configuration("llama-3.1-8b")}"\n{more}\n')
    with pytest.raises(ValueError, match=told):
        read_model(path)
