"""Verified schedules replay with equal gradients and predicted peaks; nothing else replays."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.oracle import are_equal, order_matched
from bubbleproof.reference_exec.models import linear
from bubbleproof.reference_exec.models.footprint import Footprint, footprint
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans import prediction
from bubbleproof.reference_exec.plans.accumulation import accumulation_orders
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.replay import NotVerified, replay
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.communication.matching import Semantics
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

TRANSFORMER = ModelSpec(kind="transformer", hidden=4, heads=2, sequence=3, batch=2)
FAMILIES = [
    ("gpipe", 3, 4, None),
    ("1f1b", 4, 8, None),
    ("1f1b", 3, 2, None),
    ("interleaved", 4, 8, 2),
    ("bfs", 2, 4, 3),
    ("zb-h1", 4, 8, None),
    ("zb-h1", 1, 3, None),
]


@pytest.mark.parametrize(("name", "p", "m", "v"), FAMILIES)
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_published_schedules_replay(
    name: str, p: int, m: int, v: int | None, kind: str, dtype: str
) -> None:
    case = family_case(name, p=p, m=m, v=v)
    for seed in range(3):
        report = run(case, replace(TRANSFORMER, kind=kind, dtype=dtype, seed=seed), seed=seed)
        assert report.gradients_equal
        assert report.losses_equal
        assert report.max_relative_error <= {"float64": 1e-12, "float32": 5e-4}[dtype]
        assert report.measured_peak_bytes == report.predicted_peak_bytes
        assert report.ok


@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_lowered_programs_replay_under_every_semantics(name: str, semantics: Semantics) -> None:
    report = run(family_case(name, p=4, m=6), semantics=semantics.value, seed=3)
    assert report.ok
    assert report.semantics == semantics.value


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_peaks_are_the_known_ones(name: str) -> None:
    # TINY holds 720 bytes from F to B on a middle stage, 728 on the last (test_rank). Peaks with
    # p = 4 in microbatches: GPipe m each; 1F1B p - r on rank r.
    report = run(family_case(name, p=4, m=6))
    expected = {
        "gpipe": (6 * 720, 6 * 720, 6 * 720, 6 * 728),
        "1f1b": (4 * 720, 3 * 720, 2 * 720, 728),
        # ZB-H1: rank r runs I at once and r microbatches of W (960 each) late. Rank 0: three held
        # and one between I and W: 3 * 720 + 960.
        "zb-h1": (3 * 720 + 960, 2 * 720 + 2 * 960, 720 + 3 * 960, 4 * 960),
    }
    assert report.measured_peak_bytes == expected[name]


PLACEMENTS: dict[str, Pipeline] = {
    "wave": Pipeline(num_ranks=2, num_microbatches=3, num_chunks=3, placement="wave"),
    "loop": Pipeline(num_ranks=3, num_microbatches=3, num_chunks=2),
    "blocks": Pipeline(num_ranks=3, num_microbatches=2, num_chunks=2, placement=(2, 2, 0, 1, 1, 0)),
    "lopsided": Pipeline(
        num_ranks=2, num_microbatches=3, num_chunks=3, placement=(0, 0, 0, 1, 0, 0)
    ),
    "one rank": Pipeline(num_ranks=1, num_microbatches=2, num_chunks=3),
}


def mixed(pipeline: Pipeline, seed: int) -> Pipeline:
    """The pipeline with B or I + W drawn for each stage and microbatch."""
    choice = random.Random(seed)
    flags = tuple(
        tuple(choice.random() < 0.5 for _ in range(pipeline.num_microbatches))
        for _ in range(pipeline.num_stages)
    )
    return pipeline.with_changes(split_backward=flags)


@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_any_placement_replay(name: str, seed: int) -> None:
    case = random_case(mixed(PLACEMENTS[name], seed), seed)
    layers = tuple(1 + (stage + seed) % 2 for stage in range(case.pipeline.num_stages))
    semantics = list(Semantics)[seed]
    for kind in ("mlp", "transformer"):
        spec = replace(TRANSFORMER, kind=kind, layers=layers, seed=seed)
        assert run(case, spec, semantics=semantics, seed=seed).ok


def test_overlapped_pairs_replay() -> None:
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=3, overlaps=(((0, 2), (0, 0)), ((1, 1), (1, 0)))
    )
    report = run(random_case(pipeline, 0))
    assert report.ok
    # rank 0 holds F0, F1 and, in the pair, F2 before B0 ends
    assert report.measured_peak_bytes[0] == 3 * 720


def test_a_schedule_need_not_be_left_shifted() -> None:
    case = family_case("zb-h1", p=3, m=4)
    late = Schedule(program=case.schedule.program, start=case.schedule.start * 5 + 100)
    assert replay(case.pipeline, late, TINY).ok


@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_live_bytes_are_the_models_after_every_action(name: str, kind: str) -> None:
    case, spec = random_case(mixed(PLACEMENTS[name], 5), 5), replace(TRANSFORMER, kind=kind)
    problem = prediction.in_bytes(case.pipeline, spec).problem()
    change = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(change, problem.events.task, problem.events.delta)
    task, rank = problem.locate(case.schedule.program.actions), case.schedule.program.resource
    expected = [np.cumsum(change[task[rank == r]]).tolist() for r in range(problem.num_ranks)]
    assert [list(curve) for curve in run(case, spec).live_bytes] == expected


def test_memory_in_bytes_replaces_every_other_unit() -> None:
    units = Pipeline(num_ranks=2, num_microbatches=1, activation=3, static=5, capacity=9)
    given = prediction.in_bytes(units, TINY)
    assert given.activation == (720, 728)
    assert given.released_at_input == (720 - 960, 728 - 960)
    assert given.memory_unit == "byte"
    assert [(s.base, s.capacity) for s in given.problem().stores] == [(0, None)] * 2


def test_durations_do_not_change_the_prediction() -> None:
    case = family_case("zb-h1", p=2, m=3)
    whole = replicated(case.pipeline, case.schedule, TINY)
    expected = prediction.predicted_peak_bytes(whole, TINY)
    instant = case.pipeline.with_changes(forward=0, input_backward=0, weight_backward=0)
    squeezed = left_shift(instant.problem(), case.schedule.program)
    whole = replicated(instant, squeezed, TINY)
    assert prediction.predicted_peak_bytes(whole, TINY) == expected
    assert run(case).predicted_peak_bytes == expected


def test_actions_of_no_duration_replay() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=3, forward=0)
    report = run(random_case(pipeline, 2))
    assert report.ok
    assert sum(report.measured_peak_bytes) > 0


def test_the_order_of_accumulation_matters_and_is_matched() -> None:
    # a random W order against the ascending one: equal up to rounding, not bit for bit
    pipeline = Pipeline(num_ranks=2, num_microbatches=6, split_backward=True)
    case, spec = random_case(pipeline, 1), replace(TINY, dtype="float32")
    gemm, other = accumulation_orders(case.plan(spec))
    ascending_order = [(j, 0) for j in range(6)]
    assert ascending_order not in (gemm[0, 0], gemm[1, 1])
    assert gemm != other
    ascending = family_case("gpipe", p=2, m=6).plan(spec)
    assert not are_equal(order_matched(case.plan(spec))[0], order_matched(ascending)[0])
    assert run(case, spec).ok


def test_replays_compute_on_one_thread_whatever_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    right = linear.weight_gradient

    def watched(*given: torch.Tensor) -> torch.Tensor:
        seen.add(torch.get_num_threads())
        return right(*given)

    monkeypatch.setattr(linear, "weight_gradient", watched)
    torch.set_num_threads(2)
    assert run(family_case("zb-h1", p=2, m=3)).ok
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert seen == {1}


def test_the_report_goes_to_json() -> None:
    report = run(family_case("1f1b", p=2, m=2), semantics="rendezvous", seed=4)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["ok"] is True
    assert data["failures"] == []
    assert (data["backend"], data["semantics"], data["seed"]) == ("virtual", "rendezvous", 4)
    assert data["measured_peak_bytes"] == data["predicted_peak_bytes"] == [1440, 728]
    assert data["live_bytes"] == [[720, 1440, 720, 0], [728, 0, 728, 0]]
    assert str(report) == (
        "virtual replay of 2 ranks, 2 microbatches: gradients equal, peaks [1440, 728] as predicted"
    )


# What must not replay, or not pass.


def test_each_broken_promise_is_reported() -> None:
    good = run(family_case("1f1b", p=2, m=2))
    assert good.ok
    for changes in (
        {"gradients_equal": False},
        {"losses_equal": False},
        {"max_relative_error": 2e-12},
        {"measured_peak_bytes": (1440, 727)},
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
        program=case.schedule.program.without(row),
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
    assert report.failures[0] == (
        "gradients differ from those of each microbatch alone, summed in order"
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


@pytest.mark.parametrize(
    ("kind", "dtype"), itertools.product(("mlp", "transformer"), ("float64", "float32"))
)
def test_larger_layers_are_equal_too(kind: str, dtype: str) -> None:
    # GEMMs large enough for other kernels and, without care, for several threads
    spec = ModelSpec(
        kind=kind, dtype=dtype, hidden=96, heads=4, sequence=33, batch=2, layers=2, seed=9
    )
    assert run(family_case("zb-h1", p=2, m=3), spec).ok
