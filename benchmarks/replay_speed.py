"""How long a replay on gloo takes, beside PyTorch's own pipeline runtime on the same program.

    python -m benchmarks.replay_speed [--json] [--family zb-h1 --ranks 4 --microbatches 8 ...]

Both run one program (our lowering, as a table for PyTorch) with the same model and data, a process
per rank, one thread each, and the executors take turns; the one that goes first alternates. Ours
counts the live bytes of every storage and the work of every action meanwhile, which PyTorch's
runtime has no counterpart of, so ours runs without work (``--no-count-work``), and without both.

*Cold*, in fresh processes each time, two wall-clock times taken in the parent:

``step``
    from the moment when every rank stands ready (processes joined, stages built, table loaded) to
    the last rank's gradients arriving. It is the processes' first step, on both sides: neither
    warms up. PyTorch's contains its check of shapes and its first use of each connection.
``whole``
    the call, start and end of the processes included.

*Warm*, in processes that go on (``replay_steps``): ``wall`` and ``processor`` seconds of a step.

The ratios are ours / PyTorch's, the median over the rounds. All must give the bits of the
order-matched oracle, or the run fails. A wall-clock time on a machine that does other work says
little, processor time more; no time passes or fails here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from json import dumps
from statistics import median
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from benchmarks.replay_steps import EXECUTORS, TORCH, Team, plan_of
from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.gloo import run_gloo
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.pytorch.runtime import run_torch_runtime
from bubbleproof.reference_exec.pytorch.table import as_pytorch_adds
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.families import member
from bubbleproof.theory.pipelines.programs.lowering import lower

TIMES = ("step", "whole")
SHOWN = ("kind", "hidden", "layers", "heads", "sequence", "batch", "dtype")  # of the model
WARM_TIMES = ("wall", "processor")
LIMIT_S = 120.0
Item = TypeVar("Item")
Run = Callable[..., list[RankResult]]
Seconds = dict[str, dict[str, list[float]]]  # by executor and time


def main(
    family: str = "1f1b",
    ranks: int = 4,
    microbatches: int = 8,
    model: str = "transformer",
    hidden: int = 128,
    layers: int = 2,
    heads: int = 4,
    sequence: int = 64,
    repeats: int = 5,
    steps: int = 20,
    json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Measure and print; see the module's text."""
    spec = ModelSpec(
        kind=model,
        hidden=hidden,
        layers=layers,
        heads=heads,
        sequence=sequence,
        batch=1,
        dtype="float32",
    )
    found = member(family, p=ranks, m=microbatches)
    lowered = lower(found.problem, found.schedule)
    plan = replay_plan(replicated(found.pipeline, found.schedule, spec), lowered)
    console = Console(stderr=True)
    seconds = measure(plan, repeats, console)
    warm = measure_warm(plan, steps, console)
    shown = {name: getattr(spec, name) for name in SHOWN}
    if json:
        told = {"family": family, "ranks": ranks, "microbatches": microbatches, "model": shown}
        told |= {"seconds": seconds, "ratios": ratios(seconds)}
        told |= {"warm_seconds": warm, "warm_ratios": ratios(warm)}
        text = dumps({**told, "machine": this_machine().to_json()}, indent=2)
    else:
        sizes = ", ".join(f"{name} {value}" for name, value in shown.items())
        head = f"{family}, {ranks} ranks, {microbatches} microbatches; {sizes}"
        lines = [f"on {this_machine()}", *_section("cold", seconds), *_section("warm", warm)]
        text = "\n".join([head, *lines])
    sys.stdout.write(f"{text}\n")


def measure(plan: ReplayPlan, repeats: int, console: Console) -> Seconds:
    """Wall-clock seconds of ``repeats`` rounds. Raises ``RuntimeError`` where bits are wrong."""
    wanted = _wanted(plan)
    runs: dict[str, Run] = dict.fromkeys(EXECUTORS, run_gloo) | {TORCH: run_torch_runtime}
    seconds: Seconds = {name: {kind: [] for kind in TIMES} for name in EXECUTORS}
    for name in (
        TORCH,
        EXECUTORS[0],
    ):  # the server of processes has loaded what its first run needs
        _timed(runs[name], plan)
    for index in range(repeats):
        for name in turned(EXECUTORS, index):
            with console.status(f"round {index + 1} of {repeats}: {name}"):
                results, times = _timed(runs[name], plan_of(name, plan))
            _require_bits(name, summed_replicas(results), wanted)
            for kind, value in times.items():
                seconds[name][kind].append(value)
    return seconds


def measure_warm(plan: ReplayPlan, rounds: int, console: Console) -> Seconds:
    """Seconds of ``rounds`` rounds of steps. Raises ``RuntimeError`` where bits are wrong."""
    seconds: Seconds = {name: {kind: [] for kind in WARM_TIMES} for name in EXECUTORS}
    with ExitStack() as open_teams:
        teams = [open_teams.enter_context(Team(name, plan)) for name in EXECUTORS]
        for index in range(rounds + 1):
            for team in turned(teams, index):
                with console.status(f"step {index} of {rounds}: {team.name}"):
                    step = team.step()
                if index:  # the first is cold
                    seconds[team.name]["wall"].append(step.wall)
                    seconds[team.name]["processor"].append(step.processor)
        wanted = _wanted(plan)
        for team in teams:
            _require_bits(team.name, team.gradients, wanted)
    return seconds


def turned(items: Sequence[Item], index: int) -> Sequence[Item]:
    """The items in turn, from the one whose turn it is to go first."""
    first = index % len(items)
    return [*items[first:], *items[:first]]


def _wanted(plan: ReplayPlan) -> dict[str, Gradients]:
    with single_threaded():
        ours, theirs = order_matched(plan)[0], order_matched(as_pytorch_adds(plan))[0]
    return dict.fromkeys(EXECUTORS, ours) | {TORCH: theirs}


def _require_bits(name: str, found: Gradients, wanted: dict[str, Gradients]) -> None:
    if not are_equal(found, wanted[name]):
        raise RuntimeError(f"{name}: gradients are not those of the oracle")


def ratios(seconds: Seconds) -> dict[str, dict[str, float]]:
    """By executor of ours and time: its time divided by PyTorch's, the median over rounds."""
    return {
        name: {
            kind: median(
                ours / theirs
                for ours, theirs in zip(seconds[name][kind], seconds[TORCH][kind], strict=True)
            )
            for kind in seconds[name]
        }
        for name in seconds.keys() - {TORCH}
    }


def _timed(run: Run, plan: ReplayPlan) -> tuple[list[RankResult], dict[str, float]]:
    heard: dict[str, list[float]] = {"ready": [], "done": []}

    def hear(line: str) -> None:
        heard[line.rpartition(" ")[2]].append(time.perf_counter())

    begun = time.perf_counter()
    results = run(plan, timeout=LIMIT_S, progress=hear)
    whole = time.perf_counter() - begun
    return results, {"step": max(heard["done"]) - max(heard["ready"]), "whole": whole}


def _section(words: str, seconds: Seconds) -> Iterator[str]:
    """A line for each time and, below it, one for each executor."""
    found = ratios(seconds)
    for kind, rounds in seconds[TORCH].items():
        yield f"{words} {kind}, ms, median (least to most) of {len(rounds)} rounds"
        yield from (f"    {_line(name, kind, seconds, found)}" for name in EXECUTORS)


def _line(name: str, kind: str, seconds: Seconds, found: dict[str, dict[str, float]]) -> str:
    own = [1000 * value for value in seconds[name][kind]]
    text = f"{name:24} {median(own):6.0f} ({min(own):.0f} to {max(own):.0f})"
    return text + (f"; {found[name][kind]:.2f} of PyTorch's" if name in found else "")


if __name__ == "__main__":
    typer.run(main)
