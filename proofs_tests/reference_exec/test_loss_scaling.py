"""Losses scaled for float16: the oracle's bits, the same steps skipped on all ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.evidence.training_oracle import matched_training
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import FIRST, GROWTH_INTERVAL, LossScale, Training
from bubbleproof.reference_exec.runtime import updates
from bubbleproof.reference_exec.runtime.optimizers import MasterSteps
from proofs_tests.reference_exec.cases import family_case, own, run
from proofs_tests.sized import sampled

HALF = ModelSpec(hidden=4, sequence=3, batch=1, dtype="float16")
WORDS = replace(HALF, vocabulary=11, tied=True)
STATIC, DYNAMIC = LossScale(value=1024.0), LossScale(is_dynamic=True)


def training(
    scale: LossScale | None, *, clip: float | None = None, accumulate: int = 1, steps: int = 3
) -> Training:
    return Training(
        optimizer="adam",
        steps=steps,
        has_barrier=True,
        loss_scale=scale,
        clip=clip,
        accumulate=accumulate,
    )


def replayed(spec: ModelSpec, of: Training, **options: object) -> ReplayReport:
    return run(family_case("zb-h1", p=2, m=3), spec, training=of, **options)


@pytest.mark.parametrize(
    ("family", "params", "spec", "of"),
    sampled(
        [
            ("1f1b", {"p": 3, "m": 3}, HALF, training(STATIC)),
            ("zb-h1", {"p": 2, "m": 3}, HALF, training(DYNAMIC, clip=0.05)),
            ("chimera", {"p": 2, "m": 2}, HALF, training(DYNAMIC)),
            ("interleaved", {"p": 2, "m": 2, "v": 2}, HALF, training(STATIC, accumulate=2)),
            ("1f1b", {"p": 2, "m": 2}, WORDS, training(STATIC, clip=0.05)),
            ("zb-h1", {"p": 2, "m": 2}, replace(HALF, dtype="float32"), training(STATIC)),
            ("1f1b", {"p": 2, "m": 2}, HALF, training(None)),
        ],
        every=2,
    ),
)
def test_gradients_and_weights_are_the_oracles(
    family: str, params: dict[str, int], spec: ModelSpec, of: Training
) -> None:
    report = run(family_case(family, **params), spec, training=of)
    assert report.ok, report.failures
    assert report.is_decidable
    # 65536 is infinite in float16, so the first step of a dynamic scale is skipped, and halves it
    is_dynamic = of.loss_scale == DYNAMIC
    assert report.skipped_steps == ((0,) if is_dynamic else ())
    assert report.last_scale == (32768.0 if is_dynamic else of.loss_scale and of.loss_scale.value)


def test_replicas_and_processes_scale_alike() -> None:
    report = replayed(HALF, training(DYNAMIC, steps=2), data_parallel=2)
    assert report.ok, report.failures
    assert report.skipped_steps == (0,)


def test_all_ranks_skip_a_step_for_the_overflow_of_one() -> None:
    spec = own("steep", "feature_models", "float16")
    of = training(LossScale(value=2.0**15), steps=1)
    case = family_case("zb-h1", p=2, m=3)
    report = run(case, spec, training=of)
    matched = matched_training(replace(case.plan(spec), training=of))
    finite = {key[0]: True for key in matched.gradients}
    for (stage, _), gradient in matched.gradients.items():
        finite[stage] = finite[stage] and bool(gradient.isfinite().all())
    assert finite == {0: False, 1: True}  # the gradient of stage 0 is 65 times too large
    assert report.skipped_steps == (0,)
    assert report.ok, report.failures
    assert not report.is_decidable  # what is infinite is near nothing, and the bits judge


def test_the_scale_goes_as_torchs_own() -> None:
    # an independent rule: the kernel of torch.amp.GradScaler
    value, growth = torch.tensor([FIRST]), torch.zeros(1, dtype=torch.int32)
    ours = DYNAMIC
    finite = [False, True, False, *[True] * (GROWTH_INTERVAL + 3), False, True]
    for is_finite in finite:
        overflow = torch.tensor([0.0 if is_finite else 1.0])
        torch._amp_update_scale_(value, growth, overflow, 2.0, 0.5, GROWTH_INTERVAL)
        ours = ours.after(is_finite=is_finite)
        assert (ours.value, ours.finite_steps) == (value.item(), growth.item())
    assert ours.value == FIRST / 4  # halved thrice and doubled once


def test_masters_step_in_float32() -> None:
    # 16 steps of 2^-13 on 1, of which float16 (1, then 1 + 2^-10) sees none alone: 1 + 2^-9
    weight = torch.ones(1, dtype=torch.float16)
    steps = MasterSteps([weight], lambda masters: torch.optim.SGD(masters, lr=1.0))
    assert not steps.state
    for _ in range(16):
        steps.stepped(weight).grad = torch.full((1,), -(2.0**-13))
        steps.step()
    assert weight.item() == 1 + 2.0**-9
    alone = torch.ones(1, dtype=torch.float16)
    for _ in range(16):
        alone += 2.0**-13
    assert alone.item() == 1


def test_a_scale_keeps_gradients_that_would_be_lost() -> None:
    # of a loss times 2^-20 many gradients are below 2^-24, the least number of float16
    spec = own("faint", "feature_models", "float16")
    lost, kept = (
        replayed(spec, training(scale, steps=1)) for scale in (None, LossScale(value=2.0**20))
    )
    assert lost.gradients_equal  # numbers are lost on both sides
    assert not lost.is_decidable
    assert lost.max_relative_error > 0.1
    assert kept.ok, kept.failures
    assert kept.is_decidable


def test_many_rows_of_a_norm_in_sixteen_bits_are_near() -> None:
    # torch adds up the gradients of gain and bias in 16 bits, row by row: 64 x 16 of them
    spec = replace(HALF, dtype="bfloat16", batch=64, sequence=16)
    report = run(family_case("1f1b", p=2, m=2), spec, training=training(None, steps=1))
    assert report.ok, report.failures
    assert report.max_relative_error > 0.1


@pytest.mark.parametrize("fault", ["unscaled", "all_finite"])
def test_a_rank_that_does_not_is_found_out(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    # neither divides nor looks; the third step's weights are others, or not numbers
    wrong = {"unscaled": lambda gradient, _: gradient.float(), "all_finite": lambda _: True}
    monkeypatch.setattr(updates, fault, wrong[fault])
    of = replace(training(DYNAMIC), optimizer="sgd")  # Adam hardly sees the scale of a gradient
    report = replayed(HALF, of)
    assert not report.weights_equal
    assert not report.ok


def test_what_cannot_be_scaled_is_refused() -> None:
    with pytest.raises(ValueError, match="loss scale must be a power of two from 1 to"):
        LossScale(value=1000.0)
    with pytest.raises(ValueError, match="loss scale must be a power of two or"):
        LossScale.parse("much")
    with pytest.raises(ValueError, match="ranks skip a step together, so has_barrier"):
        Training(loss_scale=STATIC)
    hosted = family_case("toffload", p=2, m=4)
    with pytest.raises(ValueError, match="hosts update stages: leave --loss-scale out"):
        run(hosted, replace(HALF, dtype="float32"), training=training(STATIC))
    with pytest.raises(ValueError, match="trains float16 by master weights on the ranks"):
        run(hosted, HALF, training=Training())
