"""PyTorch's own runtime on gloo, with and without ``defer_pp_recv``: are the gradients right?

    python -m benchmarks.deferred_run InterleavedZeroBubble 2 3 2     (name, p, m, v)

Every stage is one linear layer and a tanh in float64, all of one width, so that all messages have
one shape and a message taken for another is not refused. p processes run one training step with
``scale_grads=False``; each stage's gradients are compared with those of an ordinary backward of the
whole model. Prints one JSON object: for ``default`` and ``deferred`` the largest relative error
(max-norm, per stage) or the error that PyTorch raised.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import sys
from multiprocessing.queues import SimpleQueue

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage

from benchmarks.torch_tables import Refused, Size, schedule_classes, torch_table

WIDTH, ROWS = 8, 2
LIMIT_S = 120
Outcome = dict[int, list[list[float]]] | str


class Stage(nn.Module):
    """tanh(x A + b) in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


def model(num_stages: int) -> list[Stage]:
    """The same stages in every process."""
    torch.manual_seed(0)
    return [Stage() for _ in range(num_stages)]


def batch(microbatches: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same inputs and targets in every process; shape (microbatches * ROWS, WIDTH)."""
    torch.manual_seed(1)
    shape = (microbatches * ROWS, WIDTH)
    return torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)


def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The sum of squares, so that the loss of the batch is the sum over microbatches."""
    return ((output - target) ** 2).sum()


def gradients(stage: Stage) -> list[float]:
    """All gradients of a stage in one list."""
    found = [p.grad for p in stage.parameters() if p.grad is not None]
    result: list[float] = torch.cat([grad.flatten() for grad in found]).tolist()
    return result


def reference(size: Size) -> list[list[float]]:
    """Each stage's gradients by one ordinary backward."""
    stages = model(size.ranks * size.chunks)
    output, target = batch(size.microbatches)
    for stage in stages:
        output = stage(output)
    loss(output, target).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return [gradients(stage) for stage in stages]


def run_rank(
    rank: int,
    size: Size,
    name: str,
    stage_rank: tuple[int, ...],
    defer: bool,
    port: int,
    results: SimpleQueue[tuple[int, Outcome]],
) -> None:
    """One process of the pipeline: a step, then its gradients (or the error) into ``results``."""
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size.ranks)
    modules = model(len(stage_rank))
    mine = [g for g, home in enumerate(stage_rank) if home == rank]
    stages = [PipelineStage(modules[g], g, len(stage_rank), torch.device("cpu")) for g in mine]
    schedule = schedule_classes()[name]
    options = {"loss_fn": loss, "scale_grads": False, "defer_pp_recv": defer}
    made = schedule(stages, size.microbatches, **options)  # type: ignore[arg-type]  # base class
    data, target = batch(size.microbatches)
    try:
        made.step(
            *((data,) if 0 in mine else ()),
            target=target if len(stage_rank) - 1 in mine else None,
            losses=[],
        )
        outcome: Outcome = {g: [gradients(modules[g])] for g in mine}
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"[:200]
    results.put((rank, outcome))
    dist.destroy_process_group()


def run(name: str, size: Size, *, defer: bool) -> dict[str, object]:
    """The largest relative gradient error of each stage, or what was raised on which rank.

    Raises ``Refused`` where PyTorch has no such schedule.
    """
    table = torch_table(name, schedule_classes()[name], size)
    if table is None:
        raise Refused(f"{name} has no table")
    context = multiprocessing.get_context("fork")
    results: SimpleQueue[tuple[int, Outcome]] = context.SimpleQueue()
    port = _free_port()
    workers = [
        context.Process(
            target=run_rank, args=(rank, size, name, table.stage_rank, defer, port, results)
        )
        for rank in range(size.ranks)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT_S)
    stuck = [worker for worker in workers if worker.is_alive()]
    for worker in stuck:
        worker.kill()
    if stuck:
        return {"stuck": f"no end within {LIMIT_S} s"}
    if any(worker.exitcode for worker in workers):
        return {"raised": f"exit codes {[worker.exitcode for worker in workers]}"}
    outcomes = dict(results.get() for _ in workers)
    return compared(outcomes, reference(size))


def compared(outcomes: dict[int, Outcome], expected: list[list[float]]) -> dict[str, object]:
    """Errors per stage against the reference, or the errors raised."""
    raised = {f"rank {r}": o for r, o in sorted(outcomes.items()) if isinstance(o, str)}
    if raised:
        return {"raised": raised}
    worst: dict[str, float] = {}
    for outcome in outcomes.values():
        assert isinstance(outcome, dict)
        for stage, (found,) in sorted(outcome.items()):
            wanted = torch.tensor(expected[stage], dtype=torch.float64)
            difference = torch.tensor(found, dtype=torch.float64) - wanted
            worst[f"stage {stage}"] = float(difference.abs().max() / wanted.abs().max())
    return {"relative_error": dict(sorted(worst.items())), "largest": max(worst.values())}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.deferred_run", description=__doc__)
    parser.add_argument("schedule", choices=sorted(schedule_classes()))
    for name in ("ranks", "microbatches", "chunks"):
        parser.add_argument(name, type=int)
    given = parser.parse_args()
    size = Size(ranks=given.ranks, microbatches=given.microbatches, chunks=given.chunks)
    found = {
        "schedule": given.schedule,
        "size": str(size),
        "torch": torch.__version__,
        "default": run(given.schedule, size, defer=False),
        "deferred": run(given.schedule, size, defer=True),
    }
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
