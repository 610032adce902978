"""Devices: where a rank computes, and what it has to ask of the hardware beyond torch's operations.

A device queues work on one stream per kind of work (``DeviceLane``): computation, what is sent,
what is received, and transfers (EVICT, LOAD, OFFLOAD, RELOAD). Work of one lane runs in order;
between lanes only this holds:

- work put in a lane other than RECEIVES runs after all computation queued before it;
- computation queued after ``join(lane)`` runs after all work put in that lane before.

A RECEIVES lane that waited for computation would stand in the way of messages that are ready.
On a CPU each operation ends before the next begins, so all of this holds by itself; ``cuda`` has
the device with streams.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Any, Protocol  # a mark is what its device makes of it

import torch


class DeviceLane(StrEnum):
    """A kind of work that runs in order, beside the other kinds."""

    COMPUTE = "compute"
    SENDS = "sends"
    RECEIVES = "receives"
    TRANSFERS = "transfers"


class Device(Protocol):
    """Where a rank computes."""

    @property
    def torch_device(self) -> torch.device: ...

    @property
    def description(self) -> str:
        """The device for people, such as a GPU's name."""

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on this device, itself where it is there already."""

    def on(self, lane: DeviceLane) -> AbstractContextManager[object]:
        """A context whose operations go to a lane; see the module for what they come after."""

    def join(self, lane: DeviceLane) -> None:
        """Let computation queued from now on run after what the lane was given so far."""

    def settle(self, lane: DeviceLane) -> None:
        """Wait here, on the host, until the lane has done what it was given."""

    def use(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, whose memory came from another lane, for computation to use and let go."""

    def host_buffer(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Host memory that a transfer can read and write."""

    def mark(self) -> object:
        """The moment at which the computation queued so far has run."""

    def seconds(self, begin: Any, end: Any) -> float:
        """The seconds of the device's clock between two marks. Precondition: it has finished."""

    def finish(self, seconds: float) -> bool:
        """Wait until all lanes have run; False where that takes more than so many seconds."""

    def allocated_bytes(self) -> int | None:
        """What torch's allocator has given out; None where it keeps no count.

        More than live activations: weights, gradients, messages and work space too, in blocks.
        """

    def start_peak(self) -> None:
        """Let the allocator's peak start anew from what is given out now."""

    def peak_bytes(self) -> int | None:
        """The most that the allocator had given out since; None where it keeps no count."""


class CpuDevice:
    """The host itself: every operation has ended when it returns."""

    torch_device = torch.device("cpu")
    description = "cpu"

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def on(self, lane: DeviceLane) -> AbstractContextManager[object]:
        del lane
        return nullcontext()

    def join(self, lane: DeviceLane) -> None:
        del lane

    def settle(self, lane: DeviceLane) -> None:
        del lane

    def use(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def host_buffer(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype)

    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin

    def finish(self, seconds: float) -> bool:
        del seconds
        return True

    def allocated_bytes(self) -> int | None:
        return None

    def start_peak(self) -> None:
        pass

    def peak_bytes(self) -> int | None:
        return None


CPU = CpuDevice()


def handed_over(values: torch.Tensor, device: Device) -> torch.Tensor:
    """A copy of host values on a device, queued with the computation; the host goes on."""
    room = device.host_buffer(values.shape, values.dtype).copy_(values)
    return room.to(device.torch_device, non_blocking=True)
