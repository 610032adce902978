"""Workers that look at their process before each plan, and say what an earlier one has left."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import torch
import torch.distributed

from bubbleproof.reference_exec.drivers.gloo_worker import ParentLine, Seat, work
from bubbleproof.reference_exec.drivers.rank_report import RankReport
from bubbleproof.reference_exec.runtime.rank import Rank

_AT_FIRST: dict[str, object] = {}  # what a new process has


def _state() -> dict[str, object]:
    files = Path("/proc/self/fd")
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "native threads": len(os.listdir("/proc/self/task")) if files.exists() else 0,
        "files and connections": len(os.listdir(files)) if files.exists() else 0,
        "process group": torch.distributed.is_initialized(),
        "random numbers": bytes(torch.get_rng_state().numpy()),
        "type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "ranks": sum(isinstance(one, Rank) for one in gc.get_objects()),
        "tensors": sum(isinstance(one, torch.Tensor) for one in gc.get_objects()),
        "folder": os.getcwd(),
    }


def _look() -> None:
    state = _state()
    known = _AT_FIRST or state
    _AT_FIRST.update(known)
    left = [
        f"{name} {known[name]} and now {state[name]}"
        for name in state
        if state[name] != known[name]
    ]
    if left:
        raise RuntimeError(f"left by an earlier plan: {'; '.join(left)}")


def looks(seat: Seat, line: ParentLine) -> RankReport:
    """Ours, in a process that has to be as at first."""
    _look()
    return work(seat, line)


def litters(seat: Seat, line: ParentLine) -> RankReport:
    """The same, but it leaves a thread, a tensor and a drawn number behind."""
    _look()
    report = work(seat, line)
    _AT_FIRST["litter"] = torch.rand(1)
    threading.Thread(target=threading.Event().wait, name="litter", daemon=True).start()
    return report
