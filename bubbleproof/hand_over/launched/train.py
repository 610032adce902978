"""Train by schedule.csv in PyTorch's pipeline runtime, a process per rank:

torchrun --nproc-per-node RANKS train.py [--steps 10]

``part_of`` makes a stage of the names of its modules in stages.json, ``batch_of`` its data: put
your own there.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

HERE = Path(__file__).parent
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH, WORDS, TOKENS, RATE = 16, 61, 8, 1e-3
MADE: dict[str, Any] = {
    "tok_embeddings": lambda: nn.Embedding(WORDS, WIDTH),
    "layers": lambda: nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, 0.0, batch_first=True),
    "norm": lambda: nn.LayerNorm(WIDTH),
    "output": lambda: nn.Linear(WIDTH, WORDS),
}


@cache
def told() -> dict[str, Any]:
    """stages.json: of each stage its rank and the names of its modules; microbatches, samples."""
    found: dict[str, Any] = json.loads((HERE / "stages.json").read_text())
    return found


def part_of(stage: int) -> nn.Module:
    """The modules of a stage, with weights that the stage's number decides."""
    torch.manual_seed(stage)
    own = [MADE[name.partition(".")[0]]() for name in told()["modules"][stage]]
    return nn.Sequential(*own).double().to(DEVICE)


def parts_of(rank: int) -> dict[int, nn.Module]:
    """The stages of a rank."""
    return {stage: part_of(stage) for stage, on in enumerate(told()["ranks"]) if on == rank}


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean of a microbatch; the runtime divides gradients by their number."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def batch_of(step: int) -> torch.Tensor:
    """Words and targets of a step: (2, samples of all microbatches, tokens)."""
    drawn = torch.Generator().manual_seed(step)
    shape = (2, told()["microbatches"] * told()["samples"], TOKENS)
    return torch.randint(WORDS, shape, generator=drawn).to(DEVICE)


def runtime_of(parts: dict[int, nn.Module], *, scale: bool) -> Any:
    """PyTorch's runtime with this rank's stages, following the table."""
    total, made = len(told()["modules"]), _PipelineScheduleRuntime
    stages: Any = [PipelineStage(part, stage, total, DEVICE) for stage, part in parts.items()]
    runtime: Any = made(stages, told()["microbatches"], loss_fn=loss_of, scale_grads=scale)  # type: ignore[no-untyped-call]  # torch's
    runtime._load_csv(str(HERE / "schedule.csv"))
    return runtime


def stepped(runtime: Any, parts: dict[int, nn.Module], step: int) -> list[float]:
    """One pass of the table; the losses of its microbatches on the last stage's rank."""
    words, losses = batch_of(step), list[torch.Tensor]()
    is_end = len(told()["modules"]) - 1 in parts
    ends = {"target": words[1], "losses": losses} if is_end else {}
    runtime.step(*([words[0]] if 0 in parts else []), **ends)
    return [float(loss.detach()) for loss in losses]


def main() -> None:
    """Train for so many steps."""
    steps = int(sys.argv[2]) if sys.argv[1:2] == ["--steps"] else 10
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    parts = parts_of(dist.get_rank())
    weights = [weight for part in parts.values() for weight in part.parameters()]
    runtime, optimizer = runtime_of(parts, scale=True), torch.optim.AdamW(weights, lr=RATE)
    for step in range(steps):
        losses = stepped(runtime, parts, step)
        optimizer.step()
        optimizer.zero_grad()
        if losses:
            sys.stdout.write(f"step {step}: loss {sum(losses) / len(losses):.6f}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
