"""One rank of a profiled step: PyTorch's runtime on a GPU, its Kineto trace into a folder.

    torchrun --nproc-per-node 2 -m benchmarks.gpu_trace FOLDER [--device cpu] [--width 1024]

Each rank has two stages of two linears and runs PyTorch's interleaved zero-bubble schedule, whose
backwards are split, three times under ``torch.profiler``. Where there are more ranks than GPUs they
share them. On the cpu messages go over gloo.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import typer
from torch import nn

from bubbleproof.reference_exec.runtime.cuda import allow_waiting_kernels

CHUNKS, MICROBATCHES, STEPS, BATCH = 2, 4, 3, 64


def main(folder: Path, device: str = "cuda", width: int = 1024) -> None:
    """Run this process's rank; see the module's text."""
    from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble
    from torch.profiler import ProfilerActivity, profile

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    here, activities = torch.device("cpu"), [ProfilerActivity.CPU]
    if device == "cuda":
        found = torch.cuda.device_count()
        allow_waiting_kernels(shares=ranks > found)
        here = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % found)
        torch.cuda.set_device(here)
        activities.append(ProfilerActivity.CUDA)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    numbers = [rank + ranks * chunk for chunk in range(CHUNKS)]
    linears = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
    stages = [
        PipelineStage(nn.Sequential(*linears).to(here), number, ranks * CHUNKS, here)
        for number in numbers
    ]
    schedule = ScheduleInterleavedZeroBubble(
        list(stages), MICROBATCHES, loss_fn=nn.functional.mse_loss
    )
    data = torch.randn(BATCH * MICROBATCHES, width, device=here)

    def step() -> None:
        given = (data,) if rank == 0 else ()
        more: dict[str, Any] = {"target": data} if rank == ranks - 1 else {}
        schedule.step(*given, **more)

    step()  # which loads kernels and connects
    torch.distributed.barrier()
    with profile(activities=activities) as recorded:
        for _ in range(STEPS):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
    recorded.export_chrome_trace(str(folder / f"rank{rank}.json"))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    typer.run(main)
