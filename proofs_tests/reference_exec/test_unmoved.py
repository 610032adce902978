"""Gradients that are 0 and weights that stay are told: numbers do not show what made them."""

from __future__ import annotations

import pytest

from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from proofs_tests.reference_exec import fault_cases
from proofs_tests.reference_exec.cases import TINY, family_case, own, run
from proofs_tests.reference_exec.training_cases import trained
from proofs_tests.reference_exec.wrong_numbers import scaled_gradient

CASE = family_case("zb-h1", p=2, m=3)
ZERO_HEAD = own("zero_head")
GRADIENT = "What makes the gradient of stage 0 layers.0.module.bias and of 1 more: it is all 0;"
STEPS = "What a step does to the weights of stage 0 "


def test_gradients_of_zero_are_told() -> None:
    report = run(CASE, ZERO_HEAD)
    assert report.ok  # what ran is right; what it shows is less
    (told,) = report.alike
    assert told.startswith(GRADIENT)
    assert told in not_checked(report)


def test_a_fault_behind_a_head_of_zeros_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    marks: list[object] = []
    scaled_gradient(monkeypatch, marks)
    report = run(CASE, ZERO_HEAD)
    assert marks
    assert report.ok  # 0 by any factor is 0
    assert report.alike[0].startswith(GRADIENT)


def test_steps_that_change_nothing_are_told() -> None:
    # 1e-300 of a gradient is less than the last bit of a weight near 0.1
    report = trained(CASE, Training(steps=2, learning_rate=1e-300))
    assert report.ok
    (told,) = report.alike
    assert told.startswith(STEPS)
    assert "no bit of them changed" in told


@pytest.mark.parametrize("spec", [TINY, fault_cases.TIED, fault_cases.LLAMA])
def test_ordinary_models_and_steps_say_nothing(spec: ModelSpec) -> None:
    assert run(CASE, spec).alike == trained(CASE, Training(steps=2), spec).alike == ()
