"""A machine with one GPU and NCCL 2.30, stood in for: what NCCL carries goes over gloo.

``stand_in`` is called in each process. The processes, what they compare, how they are told apart,
which GPU each opens, the groups and the waiting for what is queued are the program's own; torch's
answers about GPUs, the GPU itself (the host) and NCCL are not.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed

from bubbleproof.commands.replaying import under_torchrun
from bubbleproof.reference_exec.drivers.nccl_order import VARIABLES, NcclHere
from bubbleproof.reference_exec.runtime import cuda
from bubbleproof.reference_exec.runtime.device import CpuDevice

NCCL = "STAND_IN_NCCL"  # the variable with its version
new_group = torch.distributed.new_group


class HostAsGpu(CpuDevice):
    """The host, called by the number of a GPU."""

    def __init__(self, index: int) -> None:
        self.description = f"stand-in for GPU {index}"


def _nccl() -> NcclHere:
    version = tuple(map(int, os.environ.get(NCCL, "2.30.7").split(".")))
    there = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return NcclHere(nccl=version, cuda=(13, 0), variables=there)


def _over_gloo(*given: Any, **named: Any) -> Any:
    return new_group(*[{"nccl": "gloo"}.get(str(each), each) for each in given], **named)


def stand_in() -> None:
    """Make this process believe in its GPU."""
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.distributed.is_nccl_available = lambda: True
    torch.distributed.new_group = _over_gloo
    cuda.CudaDevice = HostAsGpu  # type: ignore[assignment, misc]  # of the device's form
    vars(under_torchrun)["nccl_here"] = _nccl
