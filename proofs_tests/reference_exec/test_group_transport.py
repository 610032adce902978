"""Transfers that a device queues: waiting does not block, and what never ends is named."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import torch

from bubbleproof.reference_exec.drivers.group_transport import (
    ConnectionClosed,
    GroupTransport,
)
from bubbleproof.reference_exec.runtime.device import CPU, CpuDevice, DeviceLane
from bubbleproof.theory.model.actions import Action, Kind

FIRST = Action(stage=1, kind=Kind.RECV_F, microbatch=0)
SECOND = Action(stage=1, kind=Kind.RECV_F, microbatch=1)
EVICT = Action(stage=0, kind=Kind.EVICT, microbatch=2)


@dataclass
class FakeWork:
    """A ``torch.distributed.Work`` that ends when told, and notes how it was waited for."""

    ended: bool = False
    waits: list[timedelta | None] = field(default_factory=list)

    def is_completed(self) -> bool:
        return self.ended

    def wait(self, timeout: timedelta | None = None) -> bool:
        self.waits.append(timeout)
        return True


@dataclass
class Wire:
    """Stands for ``torch.distributed``: what was posted, in which group and lane."""

    posted: list[tuple[str, int, object]] = field(default_factory=list)
    works: list[FakeWork] = field(default_factory=list)

    def isend(self, tensor: torch.Tensor, peer: int, group: object) -> FakeWork:
        del tensor
        return self._post("send", peer, group)

    def irecv(self, tensor: torch.Tensor, peer: int, group: object) -> FakeWork:
        del tensor
        return self._post("receive", peer, group)

    def _post(self, what: str, peer: int, group: object) -> FakeWork:
        self.posted.append((what, peer, group))
        self.works.append(FakeWork())
        return self.works[-1]


class BusyDevice(CpuDevice):
    """A device that never finishes, and notes its lanes."""

    def __init__(self) -> None:
        self.lanes: list[DeviceLane] = []

    def on(self, lane: DeviceLane) -> AbstractContextManager[object]:
        self.lanes.append(lane)
        return super().on(lane)

    def finish(self, seconds: float) -> bool:
        del seconds
        return False


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire()
    monkeypatch.setattr(torch.distributed, "isend", made.isend)
    monkeypatch.setattr(torch.distributed, "irecv", made.irecv)
    return made


def transport(device: CpuDevice, *, is_queued: bool) -> GroupTransport:
    """Rank 1, with groups (here numbers) for its pairs with ranks 0 and 2."""
    messages, links = {(0, 1): 10, (1, 2): 12}, {(1, 0): 20}
    return GroupTransport(
        rank=1,
        messages=messages,  # type: ignore[arg-type]  # not looked at
        links=links,  # type: ignore[arg-type]  # nor these
        device=device,
        is_queued=is_queued,
    )


def test_each_pair_has_a_group_and_each_kind_of_work_a_lane(wire: Wire) -> None:
    device = BusyDevice()
    ours = transport(device, is_queued=True)
    ours.post(FIRST, torch.zeros(1), 0, is_send=False)
    ours.post(SECOND, torch.zeros(1), 2, is_send=True)
    ours.post(EVICT, torch.zeros(1), 0, is_send=True)
    assert wire.posted == [("receive", 0, 10), ("send", 2, 12), ("send", 0, 20)]
    assert device.lanes == [DeviceLane.RECEIVES, DeviceLane.SENDS, DeviceLane.TRANSFERS]


def test_a_queued_transfer_is_waited_for_on_the_device_alone(wire: Wire) -> None:
    transfer = transport(CPU, is_queued=True).post(FIRST, torch.ones(2), 0, is_send=False)
    assert not transfer.is_done()
    transfer.wait(5.0)
    assert wire.works[0].waits == [None]  # a time limit would block the host on NCCL
    assert transfer.is_done()
    assert transfer.get().tolist() == [1.0, 1.0]


def test_a_queued_send_lets_its_buffer_go_once_it_is_through(wire: Wire) -> None:
    transfer = transport(CPU, is_queued=True).post(FIRST, torch.ones(2), 2, is_send=True)
    assert transfer.buffers()
    wire.works[0].ended = True
    assert transfer.is_done()
    assert not transfer.buffers()


def test_what_is_received_is_a_message_until_it_is_taken_and_the_device_is_through(
    wire: Wire,
) -> None:
    early, late = (
        transport(CPU, is_queued=True).post(tag, torch.ones(2), 0, is_send=False)
        for tag in (FIRST, SECOND)
    )
    wire.works[0].ended = True  # before anybody uses it
    assert early.buffers()
    early.get()
    assert not early.buffers()
    late.wait(5.0)
    late.get()  # computation has it, and the device has not: torch keeps it as well
    assert late.buffers()
    wire.works[1].ended = True
    assert not late.buffers()


def test_gloo_is_waited_for_on_the_host_and_keeps_its_buffer(wire: Wire) -> None:
    transfer = transport(CPU, is_queued=False).post(FIRST, torch.ones(2), 2, is_send=True)
    wire.works[0].ended = True
    assert not transfer.is_done()
    transfer.wait(5.0)
    assert wire.works[0].waits == [timedelta(seconds=5)]
    assert transfer.is_done()


def test_what_is_not_through_at_the_end_is_named(wire: Wire) -> None:
    ours = transport(BusyDevice(), is_queued=True)
    kept = [ours.post(each, torch.zeros(1), 0, is_send=False) for each in (FIRST, SECOND)]
    wire.works[0].ended = True
    assert len(kept) == 2
    assert ours.finished(1.0) == "the device is still busy; not through: 1RECV_F1"
    assert transport(CPU, is_queued=True).finished(1.0) is None


def test_a_closed_connection_is_no_failure_of_this_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Connection closed by peer\nmore")

    monkeypatch.setattr(torch.distributed, "isend", refuse)
    with pytest.raises(ConnectionClosed, match=r"to rank 2 \(the connection was closed\)$"):
        transport(CPU, is_queued=False).post(FIRST, torch.zeros(1), 2, is_send=True)
