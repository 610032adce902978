"""Parameters that are not trained: frozen stages, adapters, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.oracle import order_matched
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import OwnLayer, build, own_batch
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.state_bytes import predicted_state
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.replaying import replay
from proofs_tests.reference_exec.cases import family_case, own, run
from proofs_tests.sized import paired, sampled

ADAM = Training(optimizer="adam", steps=2)


def model(name: str) -> ModelSpec:
    return own(name, "frozen_models")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("frozen", "family"),
    sampled(
        paired(
            [
                ("adapted", 2),
                ("first", 2),
                ("both_first", 3),
                ("middle", 3),
                ("last", 2),
                ("bare_first", 2),
            ],
            ["1f1b", "zb-h1"],
        ),
        every=2,
    ),
)
def test_what_is_frozen_replays(frozen: tuple[str, int], family: str) -> None:
    name, stages = frozen
    report = run(family_case(family, p=stages, m=3), model(name), training=ADAM)
    assert report.ok, str(report)
    assert report.peak_bytes.measured == report.peak_bytes.predicted


def test_recomputed_replicated_and_on_processes() -> None:
    assert run(family_case("trecomp", p=2, m=3), model("deep")).ok
    assert run(family_case("chimera", p=4, m=4), model("deep"), training=ADAM).ok
    assert run(family_case("zb-h1", p=2, m=3), model("adapted"), data_parallel=2, training=ADAM).ok
    case = family_case("zb-h1", p=2, m=2)
    options = ReplayOptions(backend="gloo", training=ADAM)
    assert replay(case.pipeline, case.schedule, model("first"), options).ok


def test_gradients_are_those_of_a_plain_loop() -> None:
    # by hand: the user's modules one after the other, and torch's own backward
    spec = model("adapted")
    stages = build(spec).stages
    for microbatch in range(3):
        y, target = own_batch(spec, microbatch)
        for stage in stages:
            y = stage(y)
        torch.autograd.backward((y - target).square().mean() / 3)
    found, _ = order_matched(family_case("1f1b", p=2, m=3).plan(spec))
    plain = {
        (number, f"layers.0.module.{name}"): parameter.grad
        for number, stage in enumerate(stages)
        for name, parameter in stage.named_parameters()
    }
    assert {key for key, gradient in plain.items() if gradient is None} == {
        (stage, f"layers.0.module.base.{name}") for stage in (0, 1) for name in ("weight", "bias")
    }
    assert found.keys() == {key for key, gradient in plain.items() if gradient is not None}
    for key, gradient in found.items():
        assert torch.allclose(gradient, plain[key], rtol=0, atol=1e-15), key


def test_bytes_are_those_of_what_is_trained() -> None:
    # An adapter: base 16 + 4 elements, down and up 8 each; float64. Gradients of 16 elements, and
    # Adam's moments twice as much, with a counter of 4 bytes for either tensor.
    facts = examined(model("adapted"))[1]
    assert (facts.weight_bytes, facts.gradient_bytes, facts.num_trained) == (36 * 8, 16 * 8, 2)
    assert facts.frozen == ("base.weight", "base.bias")
    assert facts.replaced == ("down", "up")
    plan = replace(family_case("1f1b", p=2, m=2).plan(model("adapted")), training=ADAM)
    state = predicted_state(plan)[0][1]
    assert (state.weights, state.gradients, state.optimizer) == (288, 128, 2 * 128 + 2 * 4)


def test_what_is_frozen_is_stated() -> None:
    report = run(family_case("zb-h1", p=2, m=2), model("adapted"))
    assert report.weight_backward[0] == (
        "stage 0: W makes 2 of 2 gradients (down.weight, up.weight), I the others; "
        "frozen, without gradient: base.weight, base.bias"
    )
    plain = run(family_case("1f1b", p=2, m=2), model("first"))
    assert plain.weight_backward == ("stage 0: frozen, without gradient: weight, bias",)


def test_a_weight_that_should_be_frozen_and_moves_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the negative control: the frozen weight is changed in a forward of the replay, not the oracle
    forward = OwnLayer.forward

    def moving(self: OwnLayer, x: torch.Tensor, store: object, prefix: object = None) -> object:
        if store is not None:
            with torch.no_grad():
                self.get_parameter("module.base.weight").mul_(1.5)
        return forward(self, x, store, prefix)  # type: ignore[arg-type]  # handed on

    case = family_case("zb-h1", p=2, m=2)
    examined(model("adapted"))
    monkeypatch.setattr(OwnLayer, "forward", moving)
    report = run(case, model("adapted"), training=ADAM)
    assert not report.gradients_equal
    assert not report.weights_equal
    assert "base.weight" in report.weight_difference


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "has no parameter that is trained; a replay compares gradients"),
        ("severed", "stage 0: its output has no gradient; a stage must not cut off its parameters"),
        ("unused", r"stage 1: its parameter idle.weight gets no gradient; use it .* or freeze it"),
    ],
)
def test_what_trains_nothing_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(family_case("1f1b", p=2, m=2), model(name))


def test_shards_and_hosts_refuse_what_is_frozen() -> None:
    case = family_case("1f1b", p=2, m=2)
    with pytest.raises(ValueError, match=r"stage 0: its parameter base.weight is frozen, .*--zero"):
        run(case, model("adapted"), data_parallel=2, zero=ZeroLevels(default=3))
    with pytest.raises(ValueError, match="stage 0 has no parameters that are trained; replicas"):
        run(case, model("first"), data_parallel=2)
