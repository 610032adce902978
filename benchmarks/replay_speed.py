"""How long a replay on gloo takes, beside PyTorch's own pipeline runtime on the same program.

    python -m benchmarks.replay_speed [--json] [--family zb-h1 --ranks 4 --microbatches 8 ...]

Both run one program (our lowering, as a table for PyTorch) with the same model and data, a process
per rank, one thread each, and the executors take turns; the one that goes first alternates. Ours
counts the live bytes of every storage meanwhile, which PyTorch's runtime has no counterpart of, so
ours runs without that count too (``replay --no-count-bytes``).

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

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import TypeVar

from rich.console import Console

from benchmarks.machine import this_machine
from benchmarks.replay_steps import EXECUTORS, OURS, TORCH, UNCOUNTED, Team, plan_of
from bubbleproof.reference_exec.drivers.gloo import run_gloo
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.oracle import are_equal, order_matched, single_threaded
from bubbleproof.reference_exec.models.model_spec import KINDS, ModelSpec
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.plans.prepared import replay_plan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.pytorch.runtime import run_torch_runtime
from bubbleproof.reference_exec.pytorch.table import as_pytorch_adds
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.families import member
from bubbleproof.theory.pipelines.lowering import lower

TIMES = ("step", "whole")
WARM_TIMES = ("wall", "processor")
LIMIT_S = 120.0
Item = TypeVar("Item")
Run = Callable[..., list[RankResult]]
Seconds = dict[str, dict[str, list[float]]]  # by executor and time


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    console = Console(stderr=True)
    seconds = measure(plan, options.repeats, console)
    warm = measure_warm(plan, options.steps, console)
    told = {
        "family": options.family,
        "ranks": plan.num_ranks,
        "microbatches": plan.num_microbatches,
        "model": {
            name: getattr(plan.spec, name)
            for name in ("kind", "hidden", "layers", "heads", "sequence", "batch", "dtype")
        },
        "seconds": seconds,
        "ratios": ratios(seconds, TIMES),
        "warm_seconds": warm,
        "warm_ratios": ratios(warm, WARM_TIMES),
        "machine": this_machine().to_json(),
    }
    sys.stdout.write((json.dumps(told, indent=2) if options.json else _text(told)) + "\n")


def measure(plan: Plan, repeats: int, console: Console) -> Seconds:
    """Wall-clock seconds of ``repeats`` rounds. Raises ``RuntimeError`` where bits are wrong."""
    wanted = _wanted(plan)
    runs: dict[str, Run] = dict.fromkeys(EXECUTORS, run_gloo) | {TORCH: run_torch_runtime}
    seconds: Seconds = {name: {kind: [] for kind in TIMES} for name in EXECUTORS}
    for name in (TORCH, OURS):  # the server of processes has loaded what its first run needs
        _timed(runs[name], plan)
    for index in range(repeats):
        for name in turned(EXECUTORS, index):
            with console.status(f"round {index + 1} of {repeats}: {name}"):
                results, times = _timed(runs[name], plan_of(name, plan))
            _require_bits(name, summed_replicas(results), wanted)
            for kind, value in times.items():
                seconds[name][kind].append(value)
    return seconds


def measure_warm(plan: Plan, rounds: int, console: Console) -> Seconds:
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


def _wanted(plan: Plan) -> dict[str, Gradients]:
    with single_threaded():
        ours, theirs = order_matched(plan)[0], order_matched(as_pytorch_adds(plan))[0]
    return {OURS: ours, UNCOUNTED: ours, TORCH: theirs}


def _require_bits(name: str, found: Gradients, wanted: dict[str, Gradients]) -> None:
    if not are_equal(found, wanted[name]):
        raise RuntimeError(f"{name}: gradients are not those of the oracle")


def ratios(seconds: Seconds, times: Sequence[str]) -> dict[str, dict[str, float]]:
    """By executor of ours and time: its time divided by PyTorch's, the median over rounds."""
    return {
        name: {
            kind: median(
                ours / theirs
                for ours, theirs in zip(seconds[name][kind], seconds[TORCH][kind], strict=True)
            )
            for kind in times
        }
        for name in (OURS, UNCOUNTED)
    }


def _timed(run: Run, plan: Plan) -> tuple[list[RankResult], dict[str, float]]:
    heard: dict[str, list[float]] = {"ready": [], "done": []}

    def hear(line: str) -> None:
        heard[line.rpartition(" ")[2]].append(time.perf_counter())

    begun = time.perf_counter()
    results = run(plan, timeout=LIMIT_S, progress=hear)
    whole = time.perf_counter() - begun
    return results, {"step": max(heard["done"]) - max(heard["ready"]), "whole": whole}


def _plan(options: argparse.Namespace) -> Plan:
    found = member(options.family, p=options.ranks, m=options.microbatches)
    spec = ModelSpec(
        kind=options.model,
        hidden=options.hidden,
        layers=options.layers,
        heads=options.heads,
        sequence=options.sequence,
        batch=1,
        dtype="float32",
    )
    lowered = lower(found.problem, found.schedule)
    return replay_plan(replicated(found.pipeline, found.schedule, spec), lowered, spec)


def _text(told: dict[str, object]) -> str:
    model = told["model"]
    assert isinstance(model, dict)
    lines = [
        f"{told['family']}, {told['ranks']} ranks, {told['microbatches']} microbatches; "
        + ", ".join(f"{name} {value}" for name, value in model.items()),
        f"on {this_machine()}",
    ]
    for words, times, prefix in (("cold", TIMES, ""), ("warm", WARM_TIMES, "warm_")):
        seconds, found = told[f"{prefix}seconds"], told[f"{prefix}ratios"]
        assert isinstance(seconds, dict)
        assert isinstance(found, dict)
        for kind in times:
            lines.append(f"{words} {kind}, ms, median (least to most) of {_rounds(seconds)} rounds")
            lines += [f"    {_line(name, kind, seconds, found)}" for name in EXECUTORS]
    return "\n".join(lines)


def _rounds(seconds: Seconds) -> int:
    return len(next(iter(seconds[OURS].values())))


def _line(name: str, kind: str, seconds: Seconds, found: dict[str, dict[str, float]]) -> str:
    own = [1000 * value for value in seconds[name][kind]]
    text = f"{name:24} {median(own):6.0f} ({min(own):.0f} to {max(own):.0f})"
    return text + (f"; {found[name][kind]:.2f} of PyTorch's" if name in found else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.replay_speed", description=__doc__)
    parser.add_argument("--family", default="1f1b")
    parser.add_argument("--model", choices=KINDS, default="transformer")
    for name, value in {
        "ranks": 4,
        "microbatches": 8,
        "hidden": 128,
        "layers": 2,
        "heads": 4,
        "sequence": 64,
        "repeats": 5,
        "steps": 20,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
