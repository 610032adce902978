"""Stragglers put into real and into drawn runs, and which of them ``bubbleproof trace`` names.

    python -m benchmarks.straggler_runs [--runs N] [--write docs/measured/traces.md]

Four gloo processes run PyTorch's interleaved 1F1B and zero-bubble schedules of eight stages, again
and again, under ``torch.profiler``. In each run one stage sleeps in one kind of computation: in its
forward (F), in the backward of its input (B, I) or of a weight (W); some runs have no fault. A run
is *right* where the stage and kind that cost most are those that slept, and nothing is named
without a fault. The rule stands in ``bubbleproof.traces.stragglers`` and was fixed before.
Stage 0 has no I of its own in PyTorch's runtime: its W does the whole backward.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.multiprocessing.spawn import spawn

from benchmarks.markdown import markdown_table
from bubbleproof.traces.stragglers import stragglers
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import traced_times
from proofs_tests.traces.known_traces import known_table

RANKS, CHUNKS, MICROBATCHES, STEPS, WIDTH, BATCH = 4, 2, 8, 3, 192, 32
SLEEP = 0.006  # seconds
KNOWN = 1_000  # drawn traces
STAGES = RANKS * CHUNKS
SCHEDULES = {
    "ScheduleInterleaved1F1B": ("F", "B"),
    "ScheduleInterleavedZeroBubble": ("F", "I", "W"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerRun:
    """A schedule with a stage that sleeps in a kind, or with none (``kind`` empty)."""

    schedule: str
    stage: int = -1
    kind: str = ""

    @property
    def fault(self) -> str:
        return f"{self.stage}{self.kind}" if self.kind else "none"


def all_runs() -> list[StragglerRun]:
    """Each stage in each kind that it has, and for every four of these one without a fault."""
    found = []
    for schedule, kinds in SCHEDULES.items():
        for stage in range(STAGES):
            found += [
                StragglerRun(schedule=schedule, stage=stage, kind=kind)
                for kind in kinds
                if (stage, kind) != (0, "I")
            ]
            found += [StragglerRun(schedule=schedule)] if stage % 2 == 0 else []
    return found


class _Sleeper(torch.autograd.Function):
    """Hands on what it gets, and sleeps in its backward while ``asleep`` says so."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, asleep: Callable[[], bool]) -> torch.Tensor:
        ctx.asleep = asleep
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        if ctx.asleep():
            time.sleep(SLEEP)
        return gradients[0], None


def _asleep(given: torch.Tensor, asleep: Callable[[], bool]) -> torch.Tensor:
    given_on: torch.Tensor = _Sleeper.apply(given, asleep)  # type: ignore[no-untyped-call]  # torch's stub
    return given_on


class SleepyStage(nn.Module):
    """Two linears and a residual; ``run`` says where it sleeps."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.run = number, StragglerRun(schedule="")
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def sleeps_in(self, *kinds: str) -> bool:
        """Whether it is this stage that sleeps, in one of the kinds."""
        return self.run.stage == self.number and self.run.kind in kinds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.sleeps_in("F"):
            time.sleep(SLEEP)
        hidden = torch.relu(self.first(x))
        hidden = _asleep(hidden, lambda: self.sleeps_in("B", "I"))
        weight = _asleep(self.second.weight, lambda: self.sleeps_in("W"))
        return nn.functional.linear(hidden, weight, self.second.bias) + x


def _work(rank: int, port: int, runs: Sequence[StragglerRun], folder: str) -> None:
    from torch.distributed import pipelining
    from torch.distributed.pipelining import PipelineStage
    from torch.profiler import ProfilerActivity, profile

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    inputs = torch.randn(BATCH * MICROBATCHES, WIDTH)
    modules = [SleepyStage(rank + RANKS * chunk) for chunk in range(CHUNKS)]
    ready: dict[str, Any] = {}
    for name in SCHEDULES:
        stages = [PipelineStage(m, m.number, STAGES, torch.device("cpu")) for m in modules]
        ready[name] = getattr(pipelining, name)(
            stages, MICROBATCHES, loss_fn=nn.functional.mse_loss
        )

    def step(name: str) -> None:
        given = (inputs,) if rank == 0 else ()
        ready[name].step(*given, **({"target": inputs} if rank == RANKS - 1 else {}))

    for name in SCHEDULES:
        step(name)
    for number, run in enumerate(runs):
        for module in modules:
            module.run = run
        torch.distributed.barrier()
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            for _ in range(STEPS):
                step(run.schedule)
        place = Path(folder) / str(number)
        place.mkdir(exist_ok=True)
        recorded.export_chrome_trace(str(place / f"rank{rank}.json"))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def recorded(runs: Sequence[StragglerRun], folder: str) -> None:
    """Write the traces of all runs, run k in the folder ``k``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn(  # type: ignore[no-untyped-call]  # torch's stub
        _work, args=(port, runs, folder), nprocs=RANKS
    )


def named(folder: Path) -> list[str]:
    """What is named in a folder's traces, the costliest first."""
    job = traced_job([read_trace(str(path)) for path in sorted(folder.glob("*.json"))])
    times = traced_times(job)
    return [f"{each.stage}{each.kind.name}" for each in stragglers(times)]


def page(runs: Sequence[StragglerRun]) -> str:
    """The page of all runs."""
    rows: dict[tuple[str, str], Counter[bool]] = {}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        recorded(runs, folder)
        for number, run in enumerate(runs):
            found = named(Path(folder) / str(number))
            is_right = found[:1] == ([run.fault] if run.kind else [])
            rows.setdefault((run.schedule, run.kind or "none"), Counter())[is_right] += 1
            if not is_right:
                wrong.append(f"{run.schedule} {run.fault}: {', '.join(found) or 'none'}")
    told = ((*key, counts.total(), counts[True]) for key, counts in rows.items())
    table = markdown_table(("schedule", "sleeps in", "runs", "right"), told)
    known, answers = known_table(KNOWN)
    return f"""# Stragglers and waits in traces

Made by `python -m benchmarks.straggler_runs --write docs/measured/traces.md`.

## Traces whose truth is known

{KNOWN:,} drawn traces of `proofs_tests/traces/known_traces.py`: 1F1B, GPipe and ZB-H1 on 3 or 4
ranks. RECVs block or are posted, gloo tells of receipts or not, SENDs wait for their receiver, each
direction has a communicator of its own, SENDs and RECVs are tried again, clocks lie up to 1 s apart
and drift by 50 parts in a million. In three of four runs one stage takes three times as long in one
kind. *Right*: that stage is named, and no other. *Open*: none is named, and the slow one is listed
as one that the clocks leave open. *Wrong*: an innocent stage is named, the slow one is not, or the
traces are refused. The last column is the waiting that is told, of all ranks, over the true one.

{answers["right"]} right, {answers["open"]} open, {answers["wrong"]} wrong.

{known}
## Real runs

{os.cpu_count()} cores without a GPU, torch {torch.__version__.partition("+")[0]}: {RANKS} gloo
processes, {STAGES} stages of two linears (width {WIDTH}, batch {BATCH}), {MICROBATCHES}
microbatches, {STEPS} profiled steps a run. One stage sleeps {SLEEP * 1e3:.0f} ms in one kind of
computation. A run is right where the stage and kind that are named first are those that slept, or
none is named where none slept (rule and threshold: `bubbleproof.traces.stragglers`, fixed before
these runs). Where other work fills the cores, steps and computations take longer, and what was
slept may be below the rule's thresholds. Wrong: {"; ".join(wrong) or "none"}.

{table}"""


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="only the first so many")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = page(all_runs()[: given.runs])
    if given.write is None:
        sys.stdout.write(text)
    else:
        given.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
