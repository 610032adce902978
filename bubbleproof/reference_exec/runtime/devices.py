"""The devices that can be asked for by name: the cpu, or one of this machine's GPUs."""

from __future__ import annotations

import torch

from bubbleproof.reference_exec.runtime.cuda import CudaDevice
from bubbleproof.reference_exec.runtime.device import CPU, Device

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
