"""A GPU as a ``Device``: a stream per lane, events between them, pinned memory on the host.

What is stated here of streams and of the caching allocator is CUDA's and torch's documentation;
``docs/reference/gpu.md`` says what was run. Computation runs on the stream that is current when
the device is opened (torch's default). Memory belongs to the stream it was allocated on: a tensor
of another lane is recorded for computation before it is let go (``use``), so that its memory is not
given out again while a kernel still reads it.

All calls into ``torch.cuda`` go through ``api``, which the tests replace by one that keeps account
of what comes after what.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any  # torch.cuda's streams and events, or the tests' own

import torch

from bubbleproof.reference_exec.runtime.device import CPU, Device, DeviceLane

POLL_SECONDS = 0.001
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
_FOR_WAITING_KERNELS = {
    # Loading a kernel at its first use may wait for all that runs ("Lazy Loading", Potential
    # Hazards, in the CUDA programming guide), a receive among it that needs what comes after.
    "CUDA_MODULE_LOADING": "EAGER",
    # Streams that share a connection to the device run in order; there are 8 unless told, 32 at
    # most, and each pair of ranks has a stream.
    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
    # Communicators start in the order of the program (NCCL 2.26).
    "NCCL_LAUNCH_ORDER_IMPLICIT": "1",
}


_FOR_SHARED_GPUS = {
    "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    # Multicast cannot be shared, and a waiting kernel takes as few of the GPU's processors as can
    # be: NCCL's default is made for two ranks on one at most.
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_MAX_CTAS": "1",
}


def allow_waiting_kernels(*, shares: bool = False) -> None:
    """Set what CUDA and NCCL need where kernels wait for other processes, unless it is set.

    And what they need where these ``share`` a GPU.

    An NCCL receive occupies its device until the message comes; meanwhile other work has to start.
    Precondition: CUDA has not been used in this process; it reads these once.
    """
    for name, value in (_FOR_WAITING_KERNELS | (_FOR_SHARED_GPUS if shares else {})).items():
        os.environ.setdefault(name, value)


class CudaDevice:
    """The GPU of one index on this machine. Precondition: it is there."""

    def __init__(self, index: int = 0, api: ModuleType | Any = torch.cuda) -> None:
        # cuBLAS gives the same bits on every run only with a work space of a fixed size.
        os.environ.setdefault(_WORKSPACE, ":4096:8")
        self._api = api
        self._index = index
        api.set_device(index)
        self._streams: dict[DeviceLane, Any] = {lane: api.Stream() for lane in DeviceLane}
        self._streams[DeviceLane.COMPUTE] = api.current_stream()

    @property
    def torch_device(self) -> torch.device:
        return torch.device("cuda", self._index)

    @property
    def description(self) -> str:
        return f"{self._api.get_device_name(self._index)}, CUDA {torch.version.cuda}"

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.torch_device)

    def on(self, lane: DeviceLane) -> AbstractContextManager[object]:
        stream = self._streams[lane]
        if lane not in (DeviceLane.COMPUTE, DeviceLane.RECEIVES):
            stream.wait_stream(self._streams[DeviceLane.COMPUTE])
        context: AbstractContextManager[object] = self._api.stream(stream)
        return context

    def join(self, lane: DeviceLane) -> None:
        if lane is not DeviceLane.COMPUTE:
            self._streams[DeviceLane.COMPUTE].wait_stream(self._streams[lane])

    def settle(self, lane: DeviceLane) -> None:
        self._streams[lane].synchronize()

    def use(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor.record_stream(self._streams[DeviceLane.COMPUTE])
        return tensor

    def host_buffer(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    def mark(self) -> object:
        event = self._api.Event(enable_timing=True)
        event.record(self._streams[DeviceLane.COMPUTE])
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        milliseconds: float = begin.elapsed_time(end)
        return milliseconds / 1000

    def finish(self, seconds: float) -> bool:
        """See ``Device``; polls, since a stream that never ends would keep a wait for ever."""
        for lane in DeviceLane:
            self.join(lane)
        event = self._api.Event()
        event.record(self._streams[DeviceLane.COMPUTE])
        deadline = time.monotonic() + seconds
        while not event.query():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def allocated_bytes(self) -> int | None:
        return int(self._api.memory_allocated(self._index))

    def start_peak(self) -> None:
        self._api.reset_peak_memory_stats(self._index)

    def peak_bytes(self) -> int | None:
        return int(self._api.max_memory_allocated(self._index))


DEVICES = ("cpu", "cuda")


def require_device(name: str) -> None:
    """Raise ``ValueError`` for a device that is unknown or not there."""
    if name not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"cuda was asked for, torch sees no GPU (torch {torch.__version__}, built "
            f"{'with' if torch.version.cuda else 'without'} CUDA)"
        )


def open_device(name: str, index: int = 0) -> Device:
    """The device ``cpu``, or the GPU of that index. Raises ``ValueError`` as above."""
    require_device(name)
    if name == "cpu":
        return CPU
    found = torch.cuda.device_count()
    if not 0 <= index < found:
        raise ValueError(f"GPU {index} was asked for, torch sees {found} on this machine")
    return CudaDevice(index)
