"""Each optimizer step of a training has microbatches of its own, and every rank uses them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import description
from bubbleproof.reference_exec.models.reference import Stage, microbatch_input, microbatch_target
from bubbleproof.reference_exec.plans.training import MOMENTUM, Training
from bubbleproof.reference_exec.runtime.compute import Batch
from proofs_tests.reference_exec.cases import TINY, family_case, own, replay_with
from proofs_tests.reference_exec.training_cases import training_plan

WORDS = replace(TINY, vocabulary=6)
OWN = own("plain")
THREE = Training(optimizer="momentum", steps=3)


def trained(spec: ModelSpec, **options: object) -> ReplayReport:
    case = family_case("zb-h1", p=2, m=3)
    return replay_with(case.pipeline, case.schedule, spec, training=THREE, **options)


@pytest.mark.parametrize("spec", [TINY, WORDS], ids=["vectors", "words"])
def test_no_two_microbatches_of_a_training_are_alike(spec: ModelSpec) -> None:
    for draw in (microbatch_input, microbatch_target):
        drawn = [draw(spec, j, step=i).flatten().tolist() for i in range(3) for j in range(3)]
        assert len({tuple(values) for values in drawn}) == 9
        assert torch.equal(draw(spec, 2, step=0), draw(spec, 2))
        assert torch.equal(draw(spec, 2, step=4), draw(spec, 2, step=4))


def test_slices_are_cut_from_the_data_of_their_step() -> None:
    whole = microbatch_input(TINY, 1, step=2)
    parts = [microbatch_input(TINY, 1, k, 2, step=2) for k in range(2)]
    assert torch.equal(torch.cat(parts, dim=1), whole)


def test_a_training_is_that_of_a_loop_without_pipeline() -> None:
    # momentum by hand, v = 0.9 v + g and w = w - rate v, on one graph of both stages
    case = family_case("1f1b", p=2, m=3)
    plan = training_plan(case, THREE)
    model = [Stage(plan.spec, stage) for stage in range(2)]
    weights = {(g, name): p for g, m in enumerate(model) for name, p in m.named_parameters()}
    velocity = {key: torch.zeros_like(weight) for key, weight in weights.items()}
    for step in range(3):
        x = torch.cat([microbatch_input(plan.spec, j, step=step) for j in range(3)])
        target = torch.cat([microbatch_target(plan.spec, j, step=step) for j in range(3)])
        loss = (model[1](model[0](x, None), None) - target).square().mean() / 2
        gradients = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for key, gradient in zip(weights, gradients, strict=True):
                velocity[key] = MOMENTUM * velocity[key] + gradient
                weights[key].sub_(velocity[key], alpha=THREE.rate)
    for result in run_virtual(plan):
        for key, weight in result.updated.items():
            assert torch.allclose(weight, weights[key], rtol=0, atol=1e-14)


@pytest.mark.parametrize("spec", [TINY, WORDS, own("stepwise")], ids=["vectors", "words", "own"])
def test_a_rank_that_keeps_the_first_batch_is_noticed(
    monkeypatch: pytest.MonkeyPatch, spec: ModelSpec
) -> None:
    assert trained(spec).ok
    right = Batch.begin_pass
    monkeypatch.setattr(Batch, "begin_pass", lambda self, _: right(self, 0))
    report = trained(spec)
    assert not report.weights_equal
    assert not report.losses_equal
    assert report.max_weight_error > 1e-6


def test_real_processes_use_the_data_of_each_step() -> None:
    assert trained(own("stepwise"), backend="gloo").ok


def test_a_users_batch_may_know_no_steps() -> None:
    assert description(own("stepwise")).has_steps
    assert not description(OWN).has_steps
    assert torch.equal(microbatch_input(OWN, 1, step=2), microbatch_input(OWN, 1))
    assert not torch.equal(microbatch_input(own("stepwise"), 1, step=2), microbatch_input(OWN, 1))
    assert trained(OWN).ok


def test_a_step_with_inputs_of_another_shape_is_refused() -> None:
    message = r"input of microbatch 0 of step 1 must be of shape \(3, 4\), got \(4, 4\)"
    with pytest.raises(ValueError, match=message):
        trained(own("growing"))
    with pytest.raises(ValueError, match=message):
        trained(own("growing"), backend="gloo")
