"""Optimizer steps of a replay: torch's own after k passes, at once or all together."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.training_oracle import matched_training
from bubbleproof.reference_exec.plans.replay_plan import Key
from bubbleproof.reference_exec.plans.training import OPTIMIZERS, Training
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.optimizers import optimizer_of
from bubbleproof.reference_exec.runtime.updates import Updates
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.test_every_family import NAMES, ORDINARY, SHAPES
from proofs_tests.reference_exec.training_cases import trained as run
from proofs_tests.reference_exec.training_cases import training_plan
from proofs_tests.sized import sampled, sized

RULES = (*OPTIMIZERS,)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sampled(NAMES, every=5))
def test_every_registered_family_trains(name: str) -> None:
    case = family_case(name, **SHAPES.get(name, ORDINARY))
    forms = ((False, "float64"), (True, "float32"))
    for has_barrier, dtype in sized(forms[NAMES.index(name) % 2 :][:1], full=forms):
        place = NAMES.index(name)
        optimizer = RULES[(place + place // 3 + has_barrier) % len(RULES)]
        training = Training(optimizer=optimizer, steps=3, has_barrier=has_barrier)
        report = run(case, training, replace(TINY, dtype=dtype, sequence=2))
        assert report.weights_equal
        assert report.ok, str(report)
        assert (report.optimizer, report.steps) == (optimizer, 3)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "semantics"), sampled([*product(("zb-h1", "chimera"), USUAL)], every=2)
)
def test_exchanges_and_barriers_stall_under_no_semantics(name: str, semantics: Semantics) -> None:
    case = family_case(name, p=4, m=4)
    for seed in sized((USUAL.index(semantics) % 4 // 2,), full=range(10)):
        training = Training(optimizer="adam", steps=2, has_barrier=seed == 0)
        assert run(case, training, semantics=semantics, seed=seed).ok


def test_two_adam_steps_by_hand() -> None:
    # One weight w = 1 with gradients 2 and -1, rate 0.1, betas 0.9 and 0.999, epsilon 1e-8:
    # m1 = 0.2, v1 = 0.004, corrected 2 and 4: w = 1 - 0.1 * 2 / (2 + e) = 0.9 up to 1e-9.
    # m2 = 0.18 - 0.1 = 0.08, v2 = 0.003996 + 0.001 = 0.004996; corrected 0.08 / 0.19 and
    # 0.004996 / 0.001999
    weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    adam = optimizer_of(Training(optimizer="adam", learning_rate=0.1), [weight])
    for gradient in (2.0, -1.0):
        weight.grad = torch.full_like(weight, gradient)
        adam.step()
    second = 0.1 * (0.08 / 0.19) / (math.sqrt(0.004996 / 0.001999) + 1e-8)
    assert weight.item() == pytest.approx(1 - 0.1 * 2 / (2 + 1e-8) - second, rel=1e-12)


def test_momentum_and_plain_descent_by_hand() -> None:
    # gradients 2 then 1 at rate 0.5: descent 1 - 1 - 0.5; with momentum the second velocity is
    # 0.9 * 2 + 1 = 2.8, so 1 - 1 - 1.4
    for optimizer, expected in (("sgd", -0.5), ("momentum", -1.4)):
        weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
        rule = optimizer_of(Training(optimizer=optimizer, learning_rate=0.5), [weight])
        for gradient in (2.0, 1.0):
            weight.grad = torch.full_like(weight, gradient)
            rule.step()
        assert weight.item() == pytest.approx(expected, rel=1e-14)


def test_a_replay_of_one_weight_step_is_descent() -> None:
    # after one step of sgd the weights have moved by rate x the gradient that the replay reports
    case = family_case("1f1b", p=2, m=2)
    plan = training_plan(case, Training(learning_rate=0.5))
    before = run_virtual(case.plan())
    weights = matched_training(replace(plan, training=Training(learning_rate=1e-30))).weights
    for result, untrained in zip(run_virtual(plan), before, strict=True):
        for key, weight in result.updated.items():
            moved = weights[key] - 0.5 * untrained.gradients[key]
            assert torch.allclose(weight, moved, rtol=0, atol=1e-15)


@pytest.mark.parametrize("has_barrier", [False, True])
def test_a_stage_steps_at_once_or_after_all_ranks(
    monkeypatch: pytest.MonkeyPatch, has_barrier: bool
) -> None:
    # 1F1B ends its backwards on the last rank first: stage 3 of 4 has stepped before rank 0 ends
    ended: set[int] = set()
    stepped: list[tuple[int, int]] = []
    update, backward = Updates._update, Compute.backward

    def noted_backward(self: Compute, key: Key, *args: object, **options: object) -> object:
        result = backward(self, key, *args, **options)  # type: ignore[arg-type]  # passed on
        if key[1] == 5:  # of six microbatches
            ended.add(key[0])
        return result

    def noted_update(self: Updates, stage: int) -> None:
        stepped.append((stage, len(ended)))
        update(self, stage)

    monkeypatch.setattr(Compute, "backward", noted_backward)
    monkeypatch.setattr(Updates, "_update", noted_update)
    run(family_case("1f1b", p=4, m=6), Training(has_barrier=has_barrier))
    assert sorted(stage for stage, _ in stepped) == [0, 1, 2, 3]
    over = dict(stepped)
    if has_barrier:
        assert over == dict.fromkeys(range(4), 4)
    else:
        assert all(over[stage] >= 4 - stage for stage in range(4))
        assert over[3] < 4


# What must not pass.


def test_another_rule_is_off_the_ordinary_training(monkeypatch: pytest.MonkeyPatch) -> None:
    # ranks and the order-matched oracle share a wrong rule: the ordinary training still notices
    right = torch.optim.SGD

    def faster(parameters: list[torch.Tensor], lr: float, **options: float) -> torch.optim.SGD:
        return right(parameters, lr=lr * (1 + (len(parameters) < 20)), **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(torch.optim, "SGD", faster)
    report = run(family_case("1f1b", p=4, m=4), Training())
    assert report.weights_equal
    assert "off those of torch's own sgd in float64" in report.failures[-1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_that_a_training_makes_grow_is_no_error(dtype: str) -> None:
    # at this rate the weights run away: what is one unit in the last place at first is much later
    training = Training(steps=12, learning_rate=2.0)
    report = run(family_case("1f1b", p=2, m=2), training, replace(TINY, dtype=dtype))
    assert report.loss > 1e9
    assert report.ok, str(report)


def test_another_rule_in_the_midst_is_off_the_ordinary_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Faster(torch.optim.SGD):
        num_steps = 0

        def step(self) -> None:  # type: ignore[override]  # as it is called here
            self.num_steps += 1
            is_wrong = self.num_steps == 2 and len(self.param_groups[0]["params"]) < 20
            self.param_groups[0]["lr"] = 0.125 * (1 + is_wrong)
            super().step()

    monkeypatch.setattr(torch.optim, "SGD", Faster)
    report = run(family_case("1f1b", p=4, m=4), Training(steps=4))
    assert report.weights_equal
    assert report.max_relative_error <= report.tolerance
    assert len(report.failures) == 1
    assert "off those of torch's own sgd in float64" in report.failures[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "lion"}, "optimizer must be one of sgd, momentum, adam, got 'lion'"),
        ({"steps": 0}, "steps must be 1 or more, whole, got 0"),
        ({"steps": 2.5}, "steps must be 1 or more, whole, got 2.5"),
        ({"learning_rate": 0.0}, "learning rate must be more than 0, got 0.0"),
        ({"learning_rate": math.nan}, "learning rate must be more than 0, got nan"),
    ],
)
def test_impossible_trainings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**changes)  # type: ignore[arg-type]  # wrong on purpose
