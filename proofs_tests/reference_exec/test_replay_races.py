"""Replays on the stand-ins for ``torch.cuda`` and NCCL: no two operations race, seeded faults do.

``virtual`` is one GPU for all ranks, ``queued`` a process per GPU over NCCL (``races.nccl``).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec import collectives
from bubbleproof.reference_exec import rank as rank_module
from bubbleproof.reference_exec.broken import BrokenProgram, MessageMismatch
from bubbleproof.reference_exec.cuda import CudaDevice
from bubbleproof.reference_exec.device import Lane
from bubbleproof.reference_exec.group_transport import GroupTransfer, GroupTransport
from bubbleproof.reference_exec.parking import Parked
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.stepping import with_steps
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.updates import Updates
from bubbleproof.reference_exec.virtual import run_virtual
from bubbleproof.theory.actions import Action
from bubbleproof.theory.activation_offload import ActivationOffload
from bubbleproof.theory.chosen import ChosenPipeline
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.schedule import Program
from proofs_tests.reference_exec import meshes
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SENDER,
    SWAPPED_RECEIVES,
    SWAPPED_SENDS,
    TINY,
    family_case,
    gradients_of,
    random_case,
)
from proofs_tests.reference_exec.races.machine import Machine, StandInDevice
from proofs_tests.reference_exec.races.nccl import Stalled, named_actions, run_queued
from proofs_tests.reference_exec.races.recorder import Recorder
from proofs_tests.reference_exec.races.timelines import Timeline
from proofs_tests.reference_exec.test_every_family import NAMES, ORDINARY, SHAPES

IS_SWEEP = bool(os.environ.get("BUBBLEPROOF_SWEEP"))
SEEDS = range(3) if IS_SWEEP else range(1)
FAMILIES: dict[str, dict[str, int]] = {
    "1f1b": {"p": 2, "m": 3},
    "zb-h1": {"p": 3, "m": 5},
    "zb-v": {"p": 2, "m": 3},
    "bpipe": {"p": 4, "m": 4},
    "svpp": {"p": 2, "m": 2, "s": 2},
    "trecomp": {"p": 2, "m": 2},
    "toffload": {"p": 2, "m": 2},
    "chimera": {"p": 2, "m": 2},
}
if IS_SWEEP:
    FAMILIES |= {name: SHAPES.get(name, ORDINARY) for name in NAMES if name != "pipemesh"}
TRAININGS = {
    "no step": None,
    "own steps": Training(optimizer="adam", steps=2),
    "a barrier": Training(optimizer="momentum", steps=2, has_barrier=True),
}


def plan_of(name: str, training: str = "no step", **spec: object) -> Plan:
    """A family's plan; the model has as many tokens as any of them has slices."""
    case = family_case(name, **FAMILIES[name])
    model = replace(TINY, **{"kind": "transformer", **spec})  # type: ignore[arg-type]  # fields
    chosen = TRAININGS[training]
    plan = case.plan(model.on(len(case.plan().stage_ranks)))
    return plan if chosen is None else with_steps(replace(plan, training=chosen))


def on_one_gpu(plan: Plan, seed: int = 0) -> Recorder:
    machine = Machine(seed=seed)
    recorder = Recorder(machine)
    with named_actions(recorder), recorder:
        run_virtual(plan, seed=seed, device=StandInDevice(machine))
    return recorder


def said(recorder: Recorder) -> list[str]:
    return [*map(str, recorder.races.values()), *recorder.misplaced]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_families_run_on_one_gpu_without_races(name: str, seed: int) -> None:
    assert said(on_one_gpu(plan_of(name), seed)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_families_run_over_nccl_without_races(name: str, seed: int) -> None:
    plan = plan_of(name)
    results, recorder = run_queued(plan, seed=seed)
    assert said(recorder) == []
    expected = gradients_of(run_virtual(plan))
    found = gradients_of(results)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("lateness", [0.0, 0.95])
def test_the_host_may_notice_ends_early_or_late(lateness: float) -> None:
    # 0: whatever has arrived counts as over when asked; near 1: only what is waited for
    assert said(run_queued(plan_of("bpipe"), lateness=lateness)[1]) == []


def test_a_device_that_never_ends_is_told_of() -> None:
    with pytest.raises(Stalled, match="the device is still busy; not through: 1RECV_F0"):
        run_queued(plan_of("1f1b"), lateness=1.0)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", ["1f1b", "bpipe", "toffload"])
@pytest.mark.parametrize("where", ["one GPU", "NCCL"])
def test_new_memory_may_be_filled(name: str, where: str) -> None:
    # torch then writes to what it allocates, on the stream that is current
    plan = plan_of(name)
    recorder = on_one_gpu(plan) if where == "one GPU" else run_queued(plan)[1]
    assert said(recorder) == []


@pytest.mark.parametrize("training", ["own steps", "a barrier"])
@pytest.mark.parametrize("name", ["1f1b", "chimera"])
def test_training_runs_over_nccl_without_races(name: str, training: str) -> None:
    assert said(run_queued(plan_of(name, training))[1]) == []


def test_tied_words_run_over_nccl_without_races() -> None:
    plan = plan_of("1f1b", "own steps", kind="llama", vocabulary=5, tied=True)
    assert said(run_queued(plan)[1]) == []


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_collectives_run_on_one_gpu_without_races(zero: int) -> None:
    plan = meshes.plan_of(meshes.mesh(zero, m=2), replicas=2, levels=str(zero))
    assert said(on_one_gpu(plan)) == []


@pytest.mark.parametrize(("zero", "replicas"), [(1, 2), (2, 3), (3, 2)])
def test_replicas_run_over_nccl_without_races(zero: int, replicas: int) -> None:
    plan = meshes.plan_of(meshes.mesh(zero, m=2), replicas=replicas, levels=str(zero))
    results, recorder = run_queued(plan)
    assert said(recorder) == []
    for found, expected in zip(results, run_virtual(plan), strict=True):
        assert found.gradients.keys() == expected.gradients.keys()
        for name, value in expected.gradients.items():
            assert torch.equal(found.gradients[name], value)


@pytest.mark.parametrize("name", FAMILIES if IS_SWEEP else ["bpipe", "1f1b"])
def test_headers_go_over_nccl_without_races(name: str) -> None:
    plan = plan_of(name, "own steps" if name == "1f1b" else "no step")
    uncounted = replace(plan, counts_bytes=False)
    assert said(run_queued(uncounted, debug_headers=True)[1]) == []


def test_headers_of_replicas_go_over_nccl_without_races() -> None:
    plan = meshes.plan_of(meshes.mesh(3, m=2), replicas=2, levels="3")
    assert said(run_queued(plan, debug_headers=True)[1]) == []


@pytest.mark.parametrize(
    "program",
    [(SWAPPED_SENDS, RECEIVER), (SENDER, SWAPPED_RECEIVES)],
    ids=["sends", "receives"],
)
def test_headers_over_nccl_tell_of_a_message_in_anothers_place(
    program: tuple[list[str], list[str]],
) -> None:
    case = family_case("gpipe", p=2, m=2)
    plan = case.plan(program=Program.from_orders(program))
    run_queued(plan)  # nobody notices that microbatches are taken for each other
    expected = r"rank 0 sent 1RECV_F[01] as \(1, 3, 4\) float64, rank 1 expected 1RECV_F[01] as"
    with pytest.raises(MessageMismatch, match=expected):
        run_queued(plan, debug_headers=True)


def test_headers_over_nccl_tell_of_another_size() -> None:
    # microbatch 1 of two tokens comes where microbatch 0 of one is expected: NCCL never ends
    case = family_case("terapipe", p=2, m=1, s=2)
    orders = [[str(a) for a in order] for order in case.lowered.orders(2)]
    crossed = ["1RECV_F0.1", "1RECV_F0"]
    orders[1] = crossed + [action for action in orders[1] if action not in crossed]
    plan = case.plan(program=Program.from_orders(orders))
    with pytest.raises(Stalled, match=r"rank 1: 1F0.* waits for 1RECV_F0"):
        run_queued(plan)
    with pytest.raises(MessageMismatch, match=r"1RECV_F0 as \(1, 2, 4\).* expected 1RECV_F0.1 as"):
        run_queued(plan, debug_headers=True)


def test_members_that_issue_other_collectives_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    right = collectives._header

    def header(action: Action) -> torch.Tensor:
        return right(action) + (next(calls) == 3)

    calls = itertools.count()
    monkeypatch.setattr(collectives, "_header", header)
    plan = meshes.plan_of(meshes.mesh(1, m=2), replicas=2, levels="1")
    with pytest.raises(BrokenProgram, match="must issue their collectives in one order"):
        run_queued(plan)


def _chosen_to_move() -> Plan:
    """One rank; microbatch 0's activation goes to the host, beside computation, and comes back."""
    moved = ActivationOffload(stage=0, microbatch=0, offload=3, reload=1)
    pipeline = ChosenPipeline(num_ranks=1, num_microbatches=2, offloads=(moved,))
    return random_case(pipeline, 1).plan()


def _cut_weights() -> Plan:
    """W of each stage in two parts."""
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=2, split_backward=True, weight_backward=2, weight_parts=(1, 1)
    )
    return random_case(pipeline, 0).plan()


@pytest.mark.parametrize("plan", [_chosen_to_move(), _cut_weights()], ids=["off-load", "parts"])
def test_other_choices_run_over_nccl_without_races(plan: Plan) -> None:
    assert said(run_queued(plan)[1]) == []


# Faults, each put into the code that runs on a GPU


def _no_join(monkeypatch: pytest.MonkeyPatch, *lanes: Lane) -> None:
    right = CudaDevice.join

    def join(self: CudaDevice, lane: Lane) -> None:
        if lane not in lanes:
            right(self, lane)

    monkeypatch.setattr(CudaDevice, "join", join)


def _no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaDevice, "use", lambda _, tensor: tensor)


def _no_wait_in_on(monkeypatch: pytest.MonkeyPatch, faulty: Lane) -> None:
    right = CudaDevice.on

    def on(self: CudaDevice, lane: Lane) -> object:
        if lane is faulty:
            return self._api.stream(self._streams[lane])
        return right(self, lane)

    monkeypatch.setattr(CudaDevice, "on", on)


def _no_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaDevice, "settle", lambda *_: None)


def _freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is parked is freed as soon as its copy is queued."""
    right = Parked.copy_to

    def copy_to(self: Parked, buffer: torch.Tensor) -> torch.Tensor:
        result = right(self, buffer)
        self.free()
        return result

    monkeypatch.setattr(Parked, "copy_to", copy_to)


def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation does not wait for messages."""

    def wait(self: GroupTransfer, seconds: float) -> None:
        del seconds
        self.waited = True

    monkeypatch.setattr(GroupTransfer, "wait", wait)


def _received_into_memory_of_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_module.Rank, "_buffer", lambda self, shape: torch.empty(
        shape, dtype=torch.float64, device=self._device.torch_device))  # fmt: skip


def _gathers_before_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are received as messages are, which do not wait for computation."""
    right = GroupTransport.among

    def among(self: GroupTransport, plan: Plan, rank: int) -> GroupTransport:
        return replace(right(self, plan, rank), receives=Lane.RECEIVES)

    monkeypatch.setattr(GroupTransport, "among", among)


def _signals_made_by_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier as it once was: a receive overwrites what computation may still write."""
    right = Updates._signal

    def signal(self: Updates, sender: int, peer: int, *, is_send: bool) -> object:
        device, self._device = self._device, _Everywhere(self._device)  # type: ignore[assignment]  # a stand-in
        try:
            yield from right(self, sender, peer, is_send=is_send)
        finally:
            self._device = device

    monkeypatch.setattr(Updates, "_signal", signal)


class _Everywhere:
    """A device whose lanes are all computation's."""

    def __init__(self, device: object) -> None:
        self._device = device

    def __getattr__(self, name: str) -> object:
        return getattr(self._device, name)

    def on(self, lane: Lane) -> object:
        del lane
        return nullcontext()


Fault = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("fault", "name", "training", "streams"),
    [
        (lambda m: _no_join(m, Lane.TRANSFERS), "toffload", "no step", {"transfers", "compute"}),
        (_no_use, "zb-h1", "no step", {"compute", "nccl"}),
        (_freed_at_once, "off-load", "no step", {"transfers", "compute"}),
        (lambda m: _no_wait_in_on(m, Lane.SENDS), "1f1b", "no step", {"compute", "nccl"}),
        (
            lambda m: _no_wait_in_on(m, Lane.TRANSFERS),
            "toffload",
            "no step",
            {"compute", "transfers"},
        ),
        (_no_settle, "toffload", "no step", {"transfers", "host"}),
        (_no_wait, "1f1b", "no step", {"nccl", "compute"}),
        (_received_into_memory_of_computation, "1f1b", "no step", {"compute", "nccl"}),
        (_signals_made_by_computation, "1f1b", "a barrier", {"compute", "nccl"}),
        (_gathers_before_their_room, "pipemesh", "no step", {"compute", "nccl"}),
    ],
    ids=[
        "no join",
        "no record_stream",
        "freed while it is copied",
        "sends do not wait",
        "transfers do not wait",
        "the host does not wait",
        "messages are not waited for",
        "a buffer of computation",
        "a barrier's signal",
        "gathers before their room",
    ],
)
def test_a_fault_is_found(
    fault: Fault,
    name: str,
    training: str,
    streams: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "off-load":
        plan = _chosen_to_move()
    elif name == "pipemesh":
        plan = meshes.plan_of(meshes.mesh(3, m=2), replicas=2, levels="3")
    else:
        plan = plan_of(name, training)
    fault(monkeypatch)
    _, recorder = run_queued(plan, lateness=0.9)
    racing = [
        {_kind_of(race.first.timeline), _kind_of(race.second.timeline)}
        for race in recorder.races.values()
    ]
    assert streams in racing


def _kind_of(timeline: Timeline) -> str:
    """The name without its rank and, of NCCL's streams, without the pair's."""
    return timeline.name.split(": ")[1].split(" ")[0]
