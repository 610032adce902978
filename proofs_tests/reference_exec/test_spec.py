"""Model specifications and footprints, without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bubbleproof.reference_exec.models.footprint import footprint
from bubbleproof.reference_exec.models.model_spec import ModelSpec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "cnn"}, "model kind must be one of mlp, transformer, llama, own, got 'cnn'"),
        ({"dtype": "float8"}, "float64, float32, bfloat16, float16, got 'float8'"),
        ({"hidden": 6, "heads": 4}, r"hidden must be a multiple of heads \(4\), got 6"),
        ({"hidden": 8.0}, "model hidden must be 1 or more, whole, got 8.0"),
        ({"layers": [1, 2]}, r"model layers must be 1 or more, whole, got \[1, 2\]"),
        ({"vocabulary": "9"}, "2 or more words, for a reference model, got '9'"),
        ({"hidden": 2}, "model hidden must be 4 or more, got 2"),
        ({"kind": "llama", "heads": 2, "kv_heads": 4}, r"multiple of kv_heads \(4\), got 2"),
        ({"kind": "llama", "hidden": 6, "heads": 2}, "hidden / heads must be even, .*got 6 / 2"),
        ({"kind": "llama", "kv_heads": 0}, "model kv_heads must be 1 or more, whole, got 0"),
        ({"batch": 0}, "model batch must be 1 or more, whole, got 0"),
        ({"layers": (1, 0)}, "model layers must be 1 or more, whole, got 0"),
        ({"layers": ()}, "model layers must be 1 or more, whole, got 0"),
        ({"seed": -1}, "model seed must be 0"),
    ],
)
def test_impossible_models_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelSpec(**changes)  # type: ignore[arg-type]  # wrong on purpose


def test_layers_per_stage_must_fit_the_stages() -> None:
    with pytest.raises(ValueError, match=r"one number or one per stage \(4\), got 2"):
        ModelSpec(layers=(1, 2)).require_stages(4)
    ModelSpec(layers=(1, 2)).require_stages(2)


def test_footprint_of_an_mlp_stage() -> None:
    # N = 2 * 4 = 8 tokens, d = 8, block N d = 64, float64. Saved: x 64, statistics 8 + 8, norm 64,
    # tanh 256 = 400 elements; output 64: 464 * 8 = 3712 bytes. Operands: norm 64 and tanh 256,
    # their output gradients 256 and 64 = 640 elements: 5120 bytes, so I acquires 1408 more.
    middle = footprint(ModelSpec(hidden=8, sequence=4, batch=2), 0, 2)
    assert (middle.activation_bytes, middle.weight_bytes) == (3712, 5120)
    assert middle.released_at_input_bytes == -1408
    # The last stage holds the error (as large as the output) and a scalar loss: 8 bytes more.
    last = footprint(ModelSpec(hidden=8, sequence=4, batch=2), 1, 2)
    assert last.activation_bytes == 3720


def test_footprint_of_a_transformer_stage() -> None:
    # N = 6, d = 8, block 48; per layer 16 * 48 = 768, two norms' statistics 4 * 6 = 24,
    # probabilities B h T^2 = 2 * 2 * 9 = 36: 828 elements; three layers and an output of 48:
    # (2484 + 48) * 4 = 10128 bytes in float32. Operands 3 * 768 * 4 = 9216.
    spec = ModelSpec(
        kind="transformer", hidden=8, heads=2, sequence=3, batch=2, layers=(1, 3), dtype="float32"
    )
    stage = footprint(spec, 1, 3)
    assert (stage.activation_bytes, stage.weight_bytes) == (10128, 9216)
    assert stage.released_at_input_bytes == 912


def test_footprint_of_a_llama_stage() -> None:
    # N = 2 * 3 = 6, d = 8, 4 heads of width 2 share 2: e = 4; f = ceil(64 / 3) = 22. Saved by one
    # layer: x, x / rms, norm, turned q, attention, x', x' / rms, norm = 8 * 6 * 8 = 384; turned k
    # and v 2 * 6 * 4 = 48; gate, silu, up, product 4 * 6 * 22 = 528; two 1 / rms 12;
    # probabilities 2 * 4 * 3 * 3 = 72: 1044 elements, the output 48: (2 * 1044 + 48) * 4 = 8544.
    # Operands: inputs norm, attention, norm' 144, product 132; output gradients of q 48, k and v
    # 48, output 48, gate and up 264, down 48 = 732 elements a layer: 2 * 732 * 4 = 5856.
    spec = ModelSpec(
        kind="llama", hidden=8, heads=4, kv_heads=2, sequence=3, batch=2, layers=2, dtype="float32"
    )
    stage = footprint(spec, 1, 3)
    assert (stage.activation_bytes, stage.weight_bytes) == (8544, 5856)
    # the first layer of stage 0 does not save its first 1 / rms: 6 elements less
    assert footprint(spec, 0, 3).activation_bytes == 8544 - 24
    # the second of two slices has one token and attends to three: probabilities 2 * 4 * 1 * 3 = 24
    # and a third of the rest, 972 / 3 = 324, output 16: (2 * 348 + 16) * 4 = 2848
    second = footprint(spec, 1, 3, slice_index=1, num_slices=2)
    assert second.activation_bytes == 2848


def test_what_needs_no_torch_loads_none() -> None:
    code = (
        "import sys, bubbleproof.reference_exec.plans.replay_plan;"
        "import bubbleproof.reference_exec.evidence.replay_report;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
