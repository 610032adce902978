"""A stand-in for NCCL's sends and receives as torch's ``ProcessGroupNCCL`` issues them.

All ranks run in one process, each on a machine of its own. An un-batched send or receive of a group
is put on the group's own stream of that machine: it first waits for the stream that is current when
it is issued, its tensor is recorded for the group's stream, ``wait`` lets the stream that is then
current wait for its end, and ``is_completed`` asks an event (``pointToPoint`` and
``synchronizeStream`` in ProcessGroupNCCL.cpp). Both directions of a pair of ranks follow each other
in one order.

What is received is there once both ends are posted and all before them on that pair have passed.
What is sent is the tensor's content when the send is issued: in a program without races it does not
change before the send has ended. Two ends of different size never pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed

from proofs_tests.reference_exec.races.machine import CudaEvent, CudaStream, Machine
from proofs_tests.reference_exec.races.patches import paused
from proofs_tests.reference_exec.races.recorder import Recorder


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """One end of a message."""

    net: Net
    machine: Machine
    is_send: bool
    tensor: torch.Tensor = field(repr=False)
    end: CudaEvent
    has_passed: bool = False
    is_stuck: bool = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        assert timeout is None, "with a time limit NCCL would keep the host waiting"
        self.machine.current.wait_event(self.end)
        return True

    def is_completed(self) -> bool:
        return self.has_passed and self.end.query()


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """A process group of some ranks, with a stream on the machine of each."""

    ranks: list[int]
    streams: dict[Machine, CudaStream] = field(default_factory=dict)
    queues: dict[tuple[int, int], deque[Work]] = field(default_factory=dict)  # by (rank, peer)


class Net:
    """Stands for ``torch.distributed`` on all machines; ``here`` is the rank whose host runs."""

    def __init__(self, recorder: Recorder, machines: Sequence[Machine]) -> None:
        self._recorder, self.machines = recorder, machines
        self._groups: dict[tuple[tuple[int, ...], int], Group] = {}
        self._opened = [0] * len(machines)
        self.here = 0

    def turn_to(self, rank: int) -> None:
        self.here = rank
        self._recorder.turn_to(self.machines[rank])

    def new_group(
        self, ranks: list[int], timeout: timedelta | None = None, backend: str | None = None
    ) -> Group:
        """The k-th group that a process opens is the k-th of all others."""
        assert backend == "nccl", backend
        del timeout
        self._opened[self.here] += 1
        key = tuple(ranks), self._opened[self.here]
        return self._groups.setdefault(key, Group(ranks=ranks))

    def isend(self, tensor: torch.Tensor, peer: int, group: Group) -> Work:
        return self._post(tensor, peer, group, is_send=True)

    def irecv(self, tensor: torch.Tensor, peer: int, group: Group) -> Work:
        return self._post(tensor, peer, group, is_send=False)

    def send(self, tensor: torch.Tensor, peer: int, group: Group) -> None:
        self.isend(tensor, peer, group).wait()

    def recv(self, tensor: torch.Tensor, peer: int, group: Group) -> None:
        self.irecv(tensor, peer, group).wait()

    def _post(self, tensor: torch.Tensor, peer: int, group: Group, *, is_send: bool) -> Work:
        machine, recorder = self.machines[self.here], self._recorder
        assert {self.here, peer} <= set(group.ranks), (self.here, peer, group.ranks)
        stream = group.streams.get(machine)
        if stream is None:
            name = "nccl " + "-".join(map(str, group.ranks))
            stream = group.streams[machine] = machine.Stream(name)
        if recorder.life_of(tensor).place != "device":
            raise ValueError(f"No backend type associated with device type cpu: {recorder.doing}")
        stream.wait_stream(machine.current)
        life = recorder.life_of(tensor)
        life.recorded.add(stream)
        if is_send:
            recorder.touch("send", stream, reads=[tensor])
        else:
            recorder.touch("receive", stream, writes=[tensor])
        with paused(recorder):
            content = tensor.detach().clone() if is_send else tensor.detach()
        end = stream.record_event()
        work = Work(net=self, machine=machine, is_send=is_send, tensor=content, end=end)
        group.queues.setdefault((self.here, peer), deque()).append(work)
        self._pass(group, self.here, peer)
        return work

    def _pass(self, group: Group, rank: int, peer: int) -> None:
        """Let messages pass whose two ends are next on their pair."""
        ours = group.queues.get((rank, peer), deque())
        theirs = group.queues.get((peer, rank), deque())
        while ours and theirs and ours[0].is_send != theirs[0].is_send:
            pair = ours[0], theirs[0]
            sent, received = pair if pair[0].is_send else pair[::-1]
            if sent.tensor.nbytes != received.tensor.nbytes:
                sent.is_stuck = received.is_stuck = True
                return
            ours.popleft(), theirs.popleft()
            with paused(self._recorder):
                received.tensor.view(-1).view(torch.uint8).copy_(
                    sent.tensor.view(-1).view(torch.uint8)
                )
            sent.has_passed = received.has_passed = True


@contextmanager
def in_place(net: Net) -> Iterator[None]:
    names = ("new_group", "isend", "irecv", "send", "recv")
    right = {name: getattr(torch.distributed, name) for name in names}
    for name in names:
        setattr(torch.distributed, name, getattr(net, name))
    try:
        yield
    finally:
        for name, function in right.items():
            setattr(torch.distributed, name, function)
