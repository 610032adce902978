"""Stages that give several things, or share parameters; the wrong twin of each is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import torch

from bubbleproof.reference_exec.models import parcels
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import build
from bubbleproof.reference_exec.models.parcels import Parcel
from bubbleproof.reference_exec.models.unequal import loss_shares
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.runtime import updates
from bubbleproof.reference_exec.runtime.compute import Compute
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.reference_exec.parcel_models import uneven_words as model_words
from proofs_tests.sized import sized

HERE = "proofs_tests.reference_exec.parcel_models:"
STAGES = {"masks": 3, "routers": 3, "tied": 2, "thrice": 4, "towers": 2}


def of(name: str, dtype: str = "float64") -> ModelSpec:
    return ModelSpec(kind="own", factory=HERE + name, dtype=dtype)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("dtype", sized(["float64"], full=["float64", "float32", "bfloat16"]))
def test_it_replays(name: str, dtype: str) -> None:
    report = run(family_case("zb-h1", p=STAGES[name], m=3), of(name, dtype))
    assert report.failures == ()
    assert report.peak_bytes.measured == report.peak_bytes.predicted


def test_processes_send_parcels_and_step_with_the_sum_of_three() -> None:
    training = Training(optimizer="adam", steps=2, clip=0.05, has_barrier=True)
    for name, case in (
        ("masks", family_case("1f1b", p=3, m=3)),
        ("thrice", family_case("interleaved", p=2, m=4, v=2)),
    ):
        report = run(case, of(name), backend="gloo", training=training)
        assert report.failures == ()


def test_what_is_packed_comes_out_and_its_gradients_go_back() -> None:
    x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    wide = torch.tensor([2.0], dtype=torch.float32, requires_grad=True)
    mask = torch.tensor([True, False, True])
    value = (x, {"mask": mask, "count": 3, "none": None}, [wide, "text", True])
    parcel = Parcel.of(value, torch.float64)
    # 24 bytes, 3, 8, 4 and 1, each filled up to 16
    assert parcel.shape == ((32 + 16 + 16 + 16 + 16) // 8,)
    message = parcel.packed(value)
    opened: Any = parcel.opened(message.detach().requires_grad_())
    got, named, (narrow, text, flag) = opened
    assert torch.equal(got, x)
    assert torch.equal(named["mask"], mask)
    assert (named["count"], named["none"], text, flag) == (3, None, "text", True)
    assert (got.requires_grad, narrow.requires_grad, named["mask"].requires_grad) == (
        True,
        True,
        False,
    )
    sent = message.detach().requires_grad_()
    opened = parcel.opened(sent)
    torch.autograd.backward((2 * opened[0]).sum())  # nothing goes back to the other
    torch.autograd.backward(message, sent.grad)
    assert torch.equal(x.grad if x.grad is not None else x, torch.full_like(x, 2.0))
    assert wide.grad is not None
    assert not wide.grad.any()


def test_a_mask_that_is_mixed_up_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    parted = Parcel.parted

    def turned(self: Parcel, message: torch.Tensor) -> list[torch.Tensor]:
        return [
            ~part if part.dtype is torch.bool and part.ndim else part
            for part in parted(self, message)
        ]

    examined(of("masks"))
    monkeypatch.setattr(parcels.Parcel, "parted", turned)
    report = run(family_case("1f1b", p=3, m=3), of("masks"))
    assert any("ordinary float64 backward" in failure for failure in report.failures), (
        report.failures
    )


def test_a_gradient_of_an_auxiliary_loss_that_is_left_out_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    joined = Parcel.joined

    def without(
        self: Parcel, tensors: list[torch.Tensor | None], like: torch.Tensor
    ) -> torch.Tensor:
        is_gradient = not torch.is_grad_enabled() and self.gradients == [True, True]
        return joined(self, [tensors[0], None] if is_gradient else tensors, like)

    def back(ctx: Any, *gradients: torch.Tensor | None) -> tuple[None, torch.Tensor]:
        return None, without(ctx.parcel, list(gradients), ctx.like)

    examined(of("routers"))
    monkeypatch.setattr(parcels._Opened, "backward", staticmethod(back))
    report = run(family_case("1f1b", p=3, m=3), of("routers"))
    assert any("ordinary float64 backward" in failure for failure in report.failures), (
        report.failures
    )


def test_ends_that_step_with_their_own_gradients_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def own(*_: object) -> Iterator[object]:
        yield from ()

    monkeypatch.setattr(updates.Updates, "_add_tied", own)
    training = Training(steps=2)
    report = run(family_case("1f1b", p=2, m=3), of("tied"), training=training)
    assert any("weights" in failure for failure in report.failures)


def test_ties_that_a_schedule_cannot_keep_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tied stages \(0 and 1 and 3\) must be on the same two"):
        run(family_case("chimera", p=4, m=4), of("thrice"))
    with pytest.raises(ValueError, match="tied embeddings cannot be sharded"):
        run(family_case("1f1b", p=2, m=2), of("tied"), data_parallel=2, zero=ZeroLevels.parse("1"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sets", "model stage 0 gives a set, which cannot be sent: give tensors, numbers, text"),
        ("other_things", "must give the same things for every microbatch of a size"),
    ],
)
def test_what_cannot_be_sent_is_refused(name: str, why: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=why):
        run(family_case("1f1b", p=2, m=8), of(name))


def test_a_message_of_one_tensor_is_that_tensor() -> None:
    known = parcels.Parcels(torch.float64)
    x = torch.ones(3, dtype=torch.float64)
    assert known.sent(1, x) is x
    assert known.opened(1, x) is x
    assert replace(known).known == {}


@pytest.mark.parametrize(("name", "dtype"), [("briefly", "bfloat16"), ("halved", "float16")])
def test_a_model_of_sixteen_bits_runs_in_its_type(name: str, dtype: str) -> None:
    report = run(family_case("zb-h1", p=2, m=3), replace(of(name), keeps_type=True))
    assert report.failures == ()
    assert (report.dtype, report.rounded_to) == (dtype, dtype)


def test_a_gradient_of_sixteen_bits_that_is_lost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = Compute.weight

    def without_the_last(self: Compute, key: tuple[int, int, int], part: int = -1) -> None:
        before = [each.grad for each in self.stages[key[0]].parameters()]
        kept = [None if each is None else each.clone() for each in before]
        weight(self, key, part)
        if key[1] == 2:
            for each, gradient in zip(self.stages[key[0]].parameters(), kept, strict=True):
                each.grad = gradient

    monkeypatch.setattr(Compute, "weight", without_the_last)
    report = run(family_case("zb-h1", p=2, m=3), replace(of("briefly"), keeps_type=True))
    assert any("gradients differ" in failure for failure in report.failures), report.failures


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (of("briefly"), "is of torch.bfloat16, and in float64 it would be another model"),
        (replace(of("mixed"), keeps_type=True), "a model of one type of 16 bits runs in it"),
    ],
)
def test_a_model_of_sixteen_bits_runs_in_no_other(spec: ModelSpec, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run(family_case("1f1b", p=2, m=2), spec)


@pytest.mark.parametrize("family", ["1f1b", "zb-h1", "bpipe", "trecomp"])
def test_microbatches_of_unequal_sizes_weigh_what_the_loss_says(family: str) -> None:
    sizes = {"p": 4, "m": 6} if family == "bpipe" else {"p": 2, "m": 3}
    name = "means" if family in ("1f1b", "zb-h1") else "means4"
    report = run(family_case(family, **sizes), of(name))
    assert report.failures == ()
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    weights = "3/16, 3/16, 1/8, 3/16, 3/16, 1/8" if family == "bpipe" else "3/8, 3/8, 1/4"
    assert report.model_notes == (
        f"microbatches weigh {weights}, as the loss of all together says",
    )


def test_the_loss_is_that_of_all_samples_together() -> None:
    model = build(of("means"))
    x, target = (torch.cat(each).double() for each in zip(*map(model.batch, range(3)), strict=True))
    for stage in model.stages:
        x = stage(x)
    report = run(family_case("1f1b", p=2, m=3), of("means"))
    assert report.loss == pytest.approx(model.loss(x, target).item(), rel=1e-12)


def test_counted_words_and_sums_weigh_theirs() -> None:
    # of microbatch j so many targets count as are not masked, of a sum each counts once
    kept = [int((model_words(j)[1] != -100).sum()) for j in range(3)]
    expected = tuple(Fraction(each, sum(kept)) for each in kept)
    assert loss_shares(of("counted"), 3) == expected
    assert loss_shares(of("sums"), 3) == (Fraction(1),) * 3
    assert run(family_case("1f1b", p=2, m=3), of("counted")).failures == ()
    processes = run(family_case("1f1b", p=2, m=3), of("sums"), backend="gloo")
    assert processes.failures == ()


def test_weights_that_are_mixed_up_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Compute.__init__

    def turned(self: Compute, *given: Any) -> None:
        made(self, *given)
        self._divisors.reverse()

    monkeypatch.setattr(Compute, "__init__", turned)
    report = run(family_case("1f1b", p=2, m=3), of("means"))
    assert any("gradients differ" in failure for failure in report.failures), report.failures


def test_losses_that_do_not_say_it_and_replicas_of_other_sizes_are_refused() -> None:
    with pytest.raises(
        ValueError, match="that of microbatch 0 is no part of the loss of all together"
    ):
        run(family_case("1f1b", p=2, m=3), of("spreads"))
    with pytest.raises(ValueError, match="their rows together fail: Sizes of tensors must match"):
        run(family_case("1f1b", p=2, m=3), of("longer"))
    with pytest.raises(ValueError, match="microbatch 0 of each replica must be of one size"):
        run(family_case("1f1b", p=2, m=2), of("means"), data_parallel=2)
