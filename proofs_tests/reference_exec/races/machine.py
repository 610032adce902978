"""A stand-in for ``torch.cuda`` on one machine: streams and events that keep clocks.

Only order is kept; the tensors are the cpu's, and each operation runs when it is issued. Device
memory is marked by the device ``cpu:0``, which torch keeps apart from ``cpu`` in what it is asked
and not in what it does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from bubbleproof.reference_exec.runtime.cuda import CudaDevice
from bubbleproof.reference_exec.runtime.device import DeviceLane
from proofs_tests.reference_exec.races.memory import Pool
from proofs_tests.reference_exec.races.timelines import Clock, Timeline

MARKED = torch.device("cpu", 0)


class CudaStream(Timeline):
    """A stream of a machine."""

    def __init__(self, machine: Machine, name: str) -> None:
        super().__init__(name)
        self._machine = machine
        self.pool = Pool()

    def issue(self) -> int:
        """Queue an operation: it comes after all that the host has waited for; its number."""
        self.after(self._machine.host.clock)
        return self.step()

    def wait_stream(self, other: CudaStream) -> None:
        self.after(self._machine.host.clock)
        self.after(other.clock)

    def wait_event(self, event: CudaEvent) -> None:
        self.after(self._machine.host.clock)
        self.after(event.clock)

    def record_event(self) -> CudaEvent:
        event = CudaEvent(self._machine)
        event.record(self)
        return event

    def synchronize(self) -> None:
        self._machine.host.after(self.clock)


class CudaEvent:
    """A moment of a stream. Asked whether it has come, it may say no a few times."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.clock: Clock = {}

    def record(self, stream: CudaStream) -> None:
        stream.after(self._machine.host.clock)
        self.clock = dict(stream.clock)

    def query(self) -> bool:
        if self._machine.is_late():
            return False
        self.synchronize()
        return True

    def synchronize(self) -> None:
        self._machine.host.after(self.clock)


class Machine:
    """The part of ``torch.cuda`` that a ``CudaDevice`` uses, for the process of one rank.

    ``lateness`` is the chance that an event, asked, has not come yet.
    """

    def __init__(self, name: str = "", seed: int = 0, lateness: float = 0.5) -> None:
        self.name = name
        self.host = Timeline(f"{name}host")
        self.lateness = lateness
        self.doing = "the start"  # what the host is at, for people
        self.on_switch: Callable[[], None] = lambda: None
        self._choice = random.Random(seed)
        self._count = 0
        self.current = CudaStream(self, f"{name}compute")

    def is_late(self) -> bool:
        return self._choice.random() < self.lateness

    def Stream(self, name: str = "") -> CudaStream:  # noqa: N802 - torch's name
        self._count += 1
        return CudaStream(self, f"{self.name}{name or f'stream {self._count}'}")

    def Event(self, *, enable_timing: bool = False) -> CudaEvent:  # noqa: N802 - torch's name
        del enable_timing
        return CudaEvent(self)

    def current_stream(self) -> CudaStream:
        return self.current

    @contextmanager
    def stream(self, stream: CudaStream) -> Iterator[None]:
        outer, self.current = self.current, stream
        self.on_switch()
        try:
            yield
        finally:
            self.current = outer
            self.on_switch()

    def set_device(self, index: int) -> None:
        del index

    def get_device_name(self, index: int) -> str:
        return f"card {index}"

    def memory_allocated(self, index: int) -> int:
        del index
        return 0


class StandInDevice(CudaDevice):
    """The ``CudaDevice`` on a stand-in, with its memory marked instead of allocated."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(0, machine)
        self.machine = machine
        for lane, stream in self._streams.items():
            stream.name = f"{machine.name}{lane}"

    @property
    def torch_device(self) -> torch.device:
        return MARKED

    def host_buffer(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=torch.device("cpu", PINNED_INDEX))

    def stream_of(self, lane: DeviceLane) -> CudaStream:
        stream: CudaStream = self._streams[lane]
        return stream


PINNED_INDEX = 1
