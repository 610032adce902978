"""What must not replay, or not pass: what is not verified, wrong sums, wrong bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.oracle import order_matched
from bubbleproof.reference_exec.evidence.replay_record import RankComparison
from bubbleproof.reference_exec.models import linear
from bubbleproof.reference_exec.models.footprint import Footprint, footprint
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans import prediction
from bubbleproof.reference_exec.replaying import NotVerified, replay
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.cases import without
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SENDER,
    SWAPPED_RECEIVES,
    SWAPPED_SENDS,
    TINY,
    edited,
    family_case,
    random_case,
    run,
)


def test_each_broken_promise_is_reported() -> None:
    good = run(family_case("1f1b", p=2, m=2))
    assert good.ok
    for changes in (
        {"gradients_equal": False},
        {"losses_equal": False},
        {"max_relative_error": 2e-12},
        {"peak_bytes": RankComparison((1440, 727), (1440, 728))},
    ):
        bad = replace(good, **changes)
        assert len(bad.failures) == 1
        assert not bad.ok


def test_a_schedule_that_breaks_a_rule_is_refused() -> None:
    case = family_case("1f1b", p=2, m=2)
    early = Schedule(program=case.schedule.program, start=case.schedule.start * 0)
    with pytest.raises(NotVerified, match=r"replay refuses what is not verified: .*"):
        replay(case.pipeline, early, TINY)
    row = next(i for i, a in enumerate(case.schedule.program.actions) if str(a) == "1B1")
    short = Schedule(
        program=without(case.schedule.program, row),
        start=case.schedule.start[[i for i in range(len(case.schedule)) if i != row]],
    )
    with pytest.raises(NotVerified, match="1B1"):
        replay(case.pipeline, short, TINY)


def test_a_schedule_over_its_memory_is_refused() -> None:
    case = family_case("gpipe", p=2, m=3)
    with pytest.raises(NotVerified, match=r"capacity|memory"):
        replay(case.pipeline.with_changes(capacity=2), case.schedule, TINY)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"0SEND_F1": []}, "0SEND_F1 stands 0 times on rank 0, must stand once"),
        ({"0SEND_F1": ["0SEND_F1", "0SEND_F1"]}, "0SEND_F1 stands 2 times on rank 0"),
        ({"0RECV_B0": ["0RECV_B1"]}, "0RECV_B"),
        ({"0B1": []}, "computations are not the schedule's, in its order"),
        ({"0F1": ["0F1", "0F1"]}, "computations are not the schedule's, in its order"),
        ({"0F0": ["0F1"], "0F1": ["0F0"]}, "computations are not the schedule's, in its order"),
    ],
)
def test_a_lowered_program_that_is_not_verified_is_refused(
    edit: dict[str, list[str]], message: str
) -> None:
    case = family_case("gpipe", p=2, m=2)
    assert run(case, program=case.lowered).ok
    with pytest.raises(NotVerified, match=message):
        run(case, program=edited(case, 0, edit))


@pytest.mark.parametrize("orders", [(SWAPPED_SENDS, RECEIVER), (SENDER, SWAPPED_RECEIVES)])
def test_crossed_messages_are_refused(orders: tuple[list[str], list[str]]) -> None:
    case = family_case("gpipe", p=2, m=2)
    with pytest.raises(NotVerified, match=r"is sent as 0SEND_F. but received as 1RECV_F"):
        run(case, program=Program.from_orders(orders))


def test_a_program_that_deadlocks_under_its_semantics_only_is_refused_there() -> None:
    # each rank queues its SEND before the RECV of what the other one sends
    case = family_case("1f1b", p=2, m=2)
    orders = [
        ["0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"],
        ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RECV_F1", "1F1", "1B1", "1SEND_B1"],
    ]
    program = Program.from_orders(orders)
    assert run(case, program=program, semantics="buffered").ok
    with pytest.raises(NotVerified, match=r"deadlock under rendezvous: .*0SEND_F1 on rank 0"):
        run(case, program=program, semantics="rendezvous")


def test_unknown_options_are_refused() -> None:
    case = family_case("1f1b", p=2, m=2)
    with pytest.raises(ValueError, match="backend must be one of virtual, gloo, got 'nccl'"):
        run(case, backend="nccl")
    with pytest.raises(ValueError, match=r"semantics must be one of buffered, .*, got 'mpi'"):
        run(case, semantics="mpi")
    for seconds in (0, float("nan"), float("inf"), 1e9):
        with pytest.raises(ValueError, match=f"timeout must be more than 0 .* got {seconds}"):
            run(case, backend="gloo", timeout=seconds)
    with pytest.raises(ValueError, match=r"zero must be ZeroLevels.parse\(.*, got '3'"):
        run(case, zero="3")
    with pytest.raises(ValueError, match=r"training must be a Training\(.*, got 3"):
        run(case, training=3)
    with pytest.raises(ValueError, match=r"one per stage \(2\), got 3"):
        run(case, replace(TINY, layers=(1, 1, 1)))


def test_a_wrong_footprint_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_byte_off(spec: ModelSpec, stage: int, num_stages: int, **slices: int) -> Footprint:
        right = footprint(spec, stage, num_stages, **slices)
        return replace(right, activation_bytes=right.activation_bytes + (stage == 1))

    monkeypatch.setattr(prediction, "footprint", one_byte_off)
    report = run(family_case("1f1b", p=3, m=4))
    assert not report.ok
    assert report.gradients_equal
    # rank 1 of 3 holds 2 microbatches; it holds 1 or 2 after each of its F and B but the last B
    assert report.failures == (
        "rank 1 held 1440 bytes at its peak, 1442 were predicted",
        "rank 1: the bytes of 7 actions are not the model's: 1 bytes short of them at 1F0 "
        "(action 1); 2 bytes short of them at 1F1 (action 4) at most",
    )


def test_a_gradient_that_is_not_finite_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear.weight_gradient

    def not_a_number(output_gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return right(output_gradient, x) * float("nan")

    monkeypatch.setattr(linear, "weight_gradient", not_a_number)
    report = run(family_case("zb-h1", p=2, m=3))
    assert not report.gradients_equal
    assert len(report.failures) == 2
    assert json.loads(json.dumps(report.to_dict()))["max_relative_error"] is None


def test_a_wrong_weight_gradient_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear.weight_gradient

    def slightly_off(output_gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return right(output_gradient, x) * (1 + 1e-9)

    monkeypatch.setattr(linear, "weight_gradient", slightly_off)
    report = run(family_case("zb-h1", p=2, m=3))
    assert not report.gradients_equal
    assert report.failures[0].startswith(
        "gradients differ from those of each microbatch alone, summed in order: stage 0 "
    )
    assert report.failures[1].startswith(
        "gradients are off the ordinary float64 backward by 1.0e-09 (relative), more than 1e-12"
    )


def test_gradients_in_another_order_are_noticed_bit_for_bit() -> None:
    # the oracle of another W order is not accepted: torch.equal has no tolerance
    pipeline = Pipeline(num_ranks=1, num_microbatches=6, split_backward=True)
    first, second = (random_case(pipeline, seed) for seed in (0, 1))
    (result,) = run_virtual(first.plan())
    assert are_equal(result.gradients, order_matched(first.plan())[0])
    assert not are_equal(result.gradients, order_matched(second.plan())[0])
