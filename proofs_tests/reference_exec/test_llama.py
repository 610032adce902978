"""The Llama-style model computes what it says and replays, whole, split, sliced and moved."""

from __future__ import annotations

import cmath
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models import layers
from bubbleproof.reference_exec.models.layers import LlamaLayer, RMSNorm, rotary_angles, turned
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage, microbatch_input
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from proofs_tests.reference_exec.cases import family_case
from proofs_tests.sized import paired, sampled

SMALL = ModelSpec(kind="llama", hidden=8, heads=4, kv_heads=2, sequence=5, batch=2)


def layer_of(spec: ModelSpec) -> LlamaLayer:
    layer = Stage(spec, 0).layers[0]
    assert isinstance(layer, LlamaLayer)
    return layer


def test_rotation_is_multiplication_by_a_complex_unit() -> None:
    # the pair (x_i, x_{i + 2}) of a head of width 4 as x_i + i x_{i+2}, at token t, times
    # exp(i t / 10000^(2 i / 4))
    x = torch.arange(24, dtype=torch.float64).reshape(1, 3, 2, 4)
    angles = rotary_angles(3, 4)
    found = turned(x, angles.cos(), angles.sin())
    for token in range(3):
        for head in range(2):
            for i in range(2):
                first, second = x[0, token, head, i].item(), x[0, token, head, i + 2].item()
                angle = token / 10000 ** (2 * i / 4)
                expected = complex(first, second) * cmath.exp(1j * angle)
                pair = found[0, token, head, [i, i + 2]].tolist()
                assert pair == pytest.approx([expected.real, expected.imag], rel=1e-14)


def test_the_norm_is_torchs_own() -> None:
    norm = RMSNorm(8, torch.float64)
    with torch.no_grad():
        norm.weight.copy_(torch.arange(8))
    x = microbatch_input(SMALL, 0)
    expected = torch.nn.functional.rms_norm(x, (8,), norm.weight, layers.EPSILON)
    assert torch.allclose(norm(x), expected, rtol=1e-14, atol=0)


def test_attention_is_torchs_own_with_shared_heads() -> None:
    layer, x = layer_of(SMALL), microbatch_input(SMALL, 0)
    angles = rotary_angles(5, 2)

    def heads(y: torch.Tensor, count: int) -> torch.Tensor:
        return y.view(2, 5, count, 2)

    query = turned(heads(layer.query(x, None), 4), angles.cos(), angles.sin())
    key = turned(heads(layer.key(x, None), 2), angles.cos(), angles.sin())
    # query heads 0 and 1 share key head 0, as 2 and 3 share 1
    key, value = (y.repeat_interleave(2, dim=2) for y in (key, heads(layer.value(x, None), 2)))
    mixed = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), is_causal=True
    )
    expected = layer.output(mixed.transpose(1, 2).reshape(2, 5, 8), None)
    assert torch.allclose(layer._attention(x, None), expected, rtol=0, atol=1e-14)


def test_scores_depend_on_the_distance_of_tokens_alone() -> None:
    angles = rotary_angles(7, 4)
    drawn = torch.randn(2, 1, 1, 1, 4, dtype=torch.float64, generator=torch.manual_seed(0))
    query, key = drawn.expand(2, 1, 7, 1, 4)
    query, key = (turned(y, angles.cos(), angles.sin())[0, :, 0] for y in (query, key))
    scores = query @ key.T
    for distance in range(-6, 7):
        diagonal = scores.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), rtol=0, atol=1e-13)


def test_derivatives_agree_with_finite_differences() -> None:
    spec = replace(SMALL, hidden=4, heads=2, kv_heads=1, sequence=2, batch=1)
    stage, store = Stage(spec, 0), WeightGradStore(Ledger())
    x = microbatch_input(spec, 0).requires_grad_()
    inputs = (x, *stage.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: stage(x, store), inputs, fast_mode=True)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("family", "dtype"),
    sampled(
        paired(
            [
                ("1f1b", {"p": 3, "m": 4}),
                ("zb-h1", {"p": 3, "m": 4}),
                ("zb-v", {"p": 2, "m": 4}),
                ("svpp", {"p": 2, "m": 2, "s": 3, "v": 2}),
                ("svpp-w", {"p": 2, "m": 2, "s": 2}),
                ("bpipe", {"p": 4, "m": 5}),
                ("trecomp", {"p": 2, "m": 3}),
                ("toffload", {"p": 2, "m": 3}),
                ("dualpipe", {"p": 2, "m": 4}),
            ],
            ["float64", "float32"],
        ),
        every=2,
    ),
)
def test_families_replay(family: tuple[str, dict[str, int]], dtype: str) -> None:
    name, params = family
    case = family_case(name, **params)
    spec = replace(SMALL, dtype=dtype, layers=2)
    report = replay(case.pipeline, case.schedule, spec, ReplayOptions(seed=1))
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert report.ok, str(report)


def test_uneven_stages_replay_with_a_footprint_of_each() -> None:
    case = family_case("1f1b", p=4, m=6)
    report = replay(case.pipeline, case.schedule, replace(SMALL, layers=(2, 3, 3, 2)))
    assert report.ok, str(report)
    # N = 10, d = 8, e = 4, f = 22, B h T^2 = 200: a layer saves 10 * (64 + 8 + 88 + 2) + 200 = 1820
    # elements, the output is 80, the last stage's loss one more, the
    # first stage N = 10 less; rank r of 4 holds 4 - r samples
    units = [(layers * 1820 + 80) * 8 for layers in (2, 3, 3, 2)]
    expected = (4 * (units[0] - 80), 3 * units[1], 2 * units[2], units[3] + 8)
    assert report.peak_bytes.measured == expected
