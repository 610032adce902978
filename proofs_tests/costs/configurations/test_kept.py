"""Saved bytes of every kind of layer against what torch keeps of transformers' own modules.

The recorded file was made by ``python -m benchmarks.kept_by_torch``; where transformers is
installed it is measured again. Scopes by operation are held against torch's selective checkpoint,
and what is not kept of frozen weights against a layer of transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kept_by_torch import (
    AT,
    NAMES,
    TOKENS,
    counted_layers,
    kept_in,
    kept_layers,
    model_of,
    shape_of,
    small_configuration,
)
from bubbleproof.costs import Deployment, known_model, layer_flops, layer_operations, layer_saved
from bubbleproof.costs.deployment import SCOPES
from bubbleproof.costs.recompute_scopes import MODULES, made_again
from bubbleproof.costs.saved_bytes import layer_input, operation_saved, scores_saved
from proofs_tests.costs.configurations.test_further_layers import TOWERS

RECORDED = json.loads(Path(__file__).with_name("kept_by_torch.json").read_text())


def test_every_kind_is_recorded() -> None:
    assert tuple(RECORDED) == NAMES
    kinds = [kind for name in NAMES for kind, _ in shape_of(RECORDED[name]["config"]).layer_runs]
    assert any(kind.window for kind in kinds)
    assert any(kind.kv_rank for kind in kinds)
    assert any(kind.parallel for kind in kinds)
    assert any(kind.shared_feed_forward for kind in kinds)
    names = {each.name for kind in kinds for each in layer_operations(kind)}
    assert names >= {"sinks", "query norm", "output gate", "shared rate", "scan", "router"}


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_keeps_what_torch_kept(name: str) -> None:
    content = RECORDED[name]["config"]
    found = counted_layers(content, with_library=False)
    assert [one.counted for one in found] == [kept for kept, _ in RECORDED[name]["kept"]]


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-oss-20b", "jamba-v0.1", "olmo-2-7b"])
def test_torch_keeps_what_is_recorded(name: str) -> None:
    pytest.importorskip("transformers")
    content = small_configuration(name)
    assert content == RECORDED[name]["config"]
    found = kept_layers(content)
    assert [[one.kept, one.routing] for one in found] == RECORDED[name]["kept"]


def test_a_routers_rates_are_counted_and_its_choice_is_not() -> None:
    """A number of 32 bits an expert; transformers' routers keep up to four times that and more."""
    for name in ("deepseek-v3", "mixtral-8x7b"):
        kind = shape_of(RECORDED[name]["config"]).layer_runs[-1][0]
        router = next(each for each in layer_operations(kind) if each.name == "router")
        rates = operation_saved(router, kind, AT)
        assert rates == 4 * kind.experts * TOKENS
        assert rates < RECORDED[name]["kept"][-1][1]


def test_scopes_leave_less_and_compute_more() -> None:
    at = Deployment(sequence=4096, accounting="fused")
    for name in ("deepseek-v3", "glm-4.5", "qwen3-next-80b-a3b", "llama-3-8b", "gemma-2-9b"):
        for kind, _ in known_model(name).model.layer_runs:
            none, _, full = (layer_saved(kind, at, scope) for scope in SCOPES)
            whole = layer_flops(kind, at).forward
            for scope in (*MODULES, "op", "norm+act", "layernorm+core_attn"):
                assert full <= layer_saved(kind, at, scope) <= none
                again = layer_flops(kind, at.with_changes(scope=scope)).again
                assert 0 <= again <= whole
            assert layer_flops(kind, at.with_changes(scope="full")).again == whole
    dense, mixed = (kind for kind, _ in known_model("deepseek-v3").model.layer_runs)
    assert layer_saved(dense, at, "moe") == layer_saved(dense, at, "none")
    assert layer_saved(mixed, at, "mlp") == layer_saved(mixed, at, "none")


def test_modules_leave_what_megatron_leaves() -> None:
    """By ``transformer_config.py`` of 0.19: outputs of norms, of an activation, of MLA's products
    that make heads are thrown away; of a block that is recomputed stays what it starts from."""
    at = Deployment(sequence=4096, accounting="fused")
    kind = known_model("deepseek-v3").model.layer_runs[1][0]
    h, k, f, heads = 7168, 8, 2048, 128
    numbers = {
        "layernorm": 2 * h,
        "moe_act": 2 * k * f,  # of silu and of the product
        # queries, keys and values, and the norms of what they are made from
        "mla_up_proj": heads * (192 + 192 + 128) + 1536 + 512,
        "shared_experts": 4 * f,
        "moe": k * (2 * h + 4 * f) + 4 * f,
    }
    statistics = {"layernorm": 2, "mla_up_proj": 2, "moe": 256}
    for scope, kept in numbers.items():
        freed = layer_saved(kind, at, "none") - layer_saved(kind, at, scope)
        assert freed == 4096 * (2 * kept + 4 * statistics.get(scope, 0))


def test_op_is_torchs_selective_checkpoint() -> None:
    """Every other product and the attention, as torchtitan's policy says, in torch's own cache."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    content = RECORDED["llama-3.1-8b"]["config"]
    keys = {key: value for key, value in content.items() if key != "model_type"}
    config = transformers.LlamaConfig(**keys, attn_implementation="sdpa")
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    layer, ops, seen = model.model.layers[0], torch.ops.aten, [0]

    def policy(_ctx: Any, func: Any, *_: Any, **__: Any) -> Any:
        if func is ops.mm.default:
            seen[0] += 1
            saved = seen[0] % 2 == 1
        else:
            saved = func is ops._scaled_dot_product_flash_attention_for_cpu.default
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    forward, _ = create_selective_checkpoint_contexts(policy)  # type: ignore[no-untyped-call]  # torch's
    x = torch.randn(1, TOKENS, config.hidden_size, dtype=torch.bfloat16)
    rotary = model.model.rotary_emb(x, torch.arange(TOKENS)[None])
    with torch.no_grad(), forward:
        layer(x, position_embeddings=rotary)
    kept = [x.nbytes]
    for outputs in forward.storage.values():
        for each in outputs.values():
            flat = each if isinstance(each, tuple | list) else [each]
            tensors = [getattr(one, "val", one) for one in flat]
            kept += [one.nbytes for one in tensors if isinstance(one, torch.Tensor)]
    kind = shape_of(content).layer_runs[0][0]
    assert sum(kept) == layer_saved(kind, AT, "op")
    assert made_again(kind, "op") >= {"key", "output", "gate", "norm 1", "silu", "product"}


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-2-9b"])
def test_a_frozen_layer_keeps_what_a_gradient_needs(name: str) -> None:
    """Nothing of linears' inputs; of transformers' layer with weights that are not trained."""
    pytest.importorskip("transformers")
    found = kept_layers(RECORDED[name]["config"], frozen=True)
    kinds = [k for k, n in shape_of(RECORDED[name]["config"]).layer_runs for _ in range(n)]
    for kind, one in zip(kinds, found, strict=True):
        assert layer_saved(kind.with_changes(frozen="weights"), AT) == one.kept
        assert layer_saved(kind.with_changes(frozen="all"), AT) == 0


@pytest.mark.parametrize("kind", ["gemma3", "qwen2_audio"])
def test_a_towers_layer_keeps_what_torch_keeps(kind: str) -> None:
    """Of an image of 64 patches, and of a clip of 32 frames."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")

    content = TOWERS[kind]
    keys = {key: value for key, value in content.items() if key != "model_type"}
    config = transformers.CONFIG_MAPPING[kind](**keys)
    if kind == "gemma3":
        model = model_of(transformers.AutoModelForImageTextToText, config)
        blocks = model.model.vision_tower.encoder.layers
        image = torch.zeros(1, 3, 112, 112, dtype=torch.bfloat16)
        found = kept_in(model, blocks, 64, lambda: model.get_image_features(image))
    else:
        model = model_of(transformers.AutoModelForSeq2SeqLM, config)
        tower = model.model.audio_tower
        sound = torch.zeros(1, 16, 64, dtype=torch.bfloat16)
        found = kept_in(model, tower.layers, 32, lambda: tower(sound))
    block = next(k for k, _ in shape_of(content).layer_runs if k.tokens and k.feed_forward)
    assert [kept for kept, _ in found] == [layer_saved(block, AT)] * 3


def test_what_full_leaves_is_what_the_layer_starts_from() -> None:
    kind = shape_of(RECORDED["llama-3.1-8b"]["config"]).layer_runs[0][0]
    assert layer_saved(kind, AT, "full") == layer_input(kind, AT)
    scores = next(each for each in layer_operations(kind) if each.scores)
    freed = layer_saved(kind, AT, "none") - layer_saved(kind, AT, "core_attn")
    assert freed == scores_saved(scores, kind, AT)
