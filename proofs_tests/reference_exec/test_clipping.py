"""Gradients clipped by their global norm: the bits of torch's own clipping, wherever stages are."""

from __future__ import annotations

import pytest
import torch

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime import clipping, updates
from proofs_tests.reference_exec.cases import TINY, family_case, own, run
from proofs_tests.sized import paired

TIGHT, LOOSE = 0.05, 1e6  # below and above the norm of all gradients of these models
WORDS = ModelSpec(kind="mlp", hidden=4, sequence=3, vocabulary=11, tied=True)


def training(clip: float | None, steps: int = 2) -> Training:
    return Training(optimizer="adam", steps=steps, has_barrier=True, clip=clip)


@pytest.mark.parametrize(
    ("family", "clip"),
    paired(
        [
            ("1f1b", {"p": 4, "m": 4}),
            ("interleaved", {"p": 2, "m": 4, "v": 2}),
            ("zb-h1", {"p": 3, "m": 4}),
            ("chimera", {"p": 2, "m": 4}),  # each stage on two ranks, which count it once
        ],
        [LOOSE, TIGHT],
    ),
)
def test_weights_are_those_of_torchs_clipping(
    family: tuple[str, dict[str, int]], clip: float
) -> None:
    name, params = family
    report = run(family_case(name, **params), TINY, training=training(clip))
    assert report.ok, report.failures
    assert report.weights_equal
    assert report.clip == clip


def test_a_tight_norm_changes_the_weights_and_a_loose_one_does_not() -> None:
    # sgd, as Adam is blind to the scale of a gradient
    case = family_case("1f1b", p=2, m=3)
    plain, tight, loose = (
        run(case, TINY, training=Training(steps=2, has_barrier=True, clip=clip))
        for clip in (None, TIGHT, LOOSE)
    )
    assert all(report.ok for report in (plain, tight, loose))
    assert plain.losses == loose.losses
    assert plain.losses != tight.losses


@pytest.mark.parametrize("backend", ["virtual", "gloo"])
def test_a_tied_matrix_counts_once(backend: str) -> None:
    report = run(family_case("1f1b", p=2, m=3), WORDS, training=training(TIGHT), backend=backend)
    assert report.ok, report.failures


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_other_types_are_clipped_alike(dtype: str) -> None:
    spec = ModelSpec(kind="mlp", hidden=4, sequence=3, dtype=dtype)
    report = run(family_case("zb-h1", p=2, m=3), spec, training=training(TIGHT))
    assert report.weights_equal, report.failures


def test_frozen_parameters_have_no_norm() -> None:
    report = run(
        family_case("zb-h1", p=2, m=3), own("adapted", "frozen_models"), training=training(TIGHT)
    )
    assert report.ok, report.failures


def test_a_norm_of_own_stages_alone_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_first(norms: dict[int, torch.Tensor]) -> torch.Tensor:
        return clipping.global_norm({min(norms): norms[min(norms)]})

    monkeypatch.setattr(updates, "global_norm", of_the_first)
    steps = Training(steps=1, has_barrier=True, clip=TIGHT)
    report = run(family_case("1f1b", p=2, m=3), TINY, training=steps)
    assert not report.weights_equal


def test_what_cannot_be_clipped_is_refused() -> None:
    with pytest.raises(ValueError, match="replay clip must be a norm above 0, got 0"):
        Training(has_barrier=True, clip=0)
    with pytest.raises(ValueError, match="has_barrier must be set"):
        Training(clip=1.0)
    with pytest.raises(ValueError, match=r"hosts update stages: leave --clip out"):
        run(family_case("toffload", p=2, m=4), TINY, training=training(TIGHT))
