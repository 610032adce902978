"""Faults put into the code that runs on a GPU: the race detector finds each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.drivers.group_transport import GroupTransfer, GroupTransport
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime import rank_messages
from bubbleproof.reference_exec.runtime.cuda import CudaDevice
from bubbleproof.reference_exec.runtime.device import DeviceLane
from bubbleproof.reference_exec.runtime.updates import Updates
from bubbleproof.reference_exec.saved import SampleStorages
from proofs_tests.reference_exec import meshes
from proofs_tests.reference_exec.races.queued import run_queued
from proofs_tests.reference_exec.races.timelines import Timeline
from proofs_tests.reference_exec.test_replay_races import chosen_to_move, plan_of


def _no_join(monkeypatch: pytest.MonkeyPatch, *lanes: DeviceLane) -> None:
    right = CudaDevice.join

    def join(self: CudaDevice, lane: DeviceLane) -> None:
        if lane not in lanes:
            right(self, lane)

    monkeypatch.setattr(CudaDevice, "join", join)


def _no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaDevice, "use", lambda _, tensor: tensor)


def _no_wait_in_on(monkeypatch: pytest.MonkeyPatch, faulty: DeviceLane) -> None:
    right = CudaDevice.on

    def on(self: CudaDevice, lane: DeviceLane) -> object:
        if lane is faulty:
            return self._api.stream(self._streams[lane])
        return right(self, lane)

    monkeypatch.setattr(CudaDevice, "on", on)


def _no_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaDevice, "settle", lambda *_: None)


def _freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is away is freed as soon as its copy is queued."""
    right = SampleStorages.copy_to

    def copy_to(self: SampleStorages, buffer: torch.Tensor) -> torch.Tensor:
        result = right(self, buffer)
        self.free()
        return result

    monkeypatch.setattr(SampleStorages, "copy_to", copy_to)


def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation does not wait for messages."""

    def wait(self: GroupTransfer, seconds: float) -> None:
        del seconds
        self.waited = True

    monkeypatch.setattr(GroupTransfer, "wait", wait)


def _received_into_memory_of_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rank_messages.RankMessages,
        "_buffer",
        lambda self, shape: torch.empty(
            shape, dtype=torch.float64, device=self._device.torch_device
        ),
    )


def _gathers_before_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are received as messages are, which do not wait for computation."""
    right = GroupTransport.among

    def among(self: GroupTransport, plan: ReplayPlan, rank: int) -> GroupTransport:
        return replace(right(self, plan, rank), receives=DeviceLane.RECEIVES)

    monkeypatch.setattr(GroupTransport, "among", among)


def _signals_made_by_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier as it once was: a receive overwrites what computation may still write."""
    right = Updates._barrier

    def barrier(self: Updates, clip: float | None) -> object:
        device, self._device = self._device, _Everywhere(self._device)  # type: ignore[assignment]  # a stand-in
        try:
            yield from right(self, clip)
        finally:
            self._device = device

    monkeypatch.setattr(Updates, "_barrier", barrier)


class _Everywhere:
    """A device whose lanes are all computation's."""

    def __init__(self, device: object) -> None:
        self._device = device

    def __getattr__(self, name: str) -> object:
        return getattr(self._device, name)

    def on(self, lane: DeviceLane) -> object:
        del lane
        return nullcontext()


Fault = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("fault", "name", "training", "streams"),
    [
        (
            lambda m: _no_join(m, DeviceLane.TRANSFERS),
            "toffload",
            "no step",
            {"transfers", "compute"},
        ),
        (_no_use, "zb-h1", "no step", {"compute", "nccl"}),
        (_freed_at_once, "off-load", "no step", {"transfers", "compute"}),
        (lambda m: _no_wait_in_on(m, DeviceLane.SENDS), "1f1b", "no step", {"compute", "nccl"}),
        (
            lambda m: _no_wait_in_on(m, DeviceLane.TRANSFERS),
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
        plan = chosen_to_move()
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
