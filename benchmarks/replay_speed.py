"""How long a replay on gloo takes, beside PyTorch's own pipeline runtime on the same program.

    python -m benchmarks.replay_speed [--json] [--family zb-h1 --ranks 4 --microbatches 8 ...]

Both run one program (our lowering, as a table for PyTorch) with the same model and data, a process
per rank, one thread each. They take turns within one run, each time in fresh processes, and the
one that goes first alternates. Two wall-clock times are taken in the parent:

``step``
    from the moment when every rank stands ready (processes joined, stages built, table loaded) to
    the last rank's gradients arriving. It is the processes' first step, on both sides: neither
    warms up. PyTorch's contains its check of shapes and its first use of each connection.
``whole``
    the call, start and end of the processes included.

The ratio is ours / PyTorch's, the median over the pairs. Both must give the bits of the
order-matched oracle, or the run fails. A time says nothing of a machine that does other work at the
same time, so no time passes or fails here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from statistics import median

from rich.console import Console

from benchmarks.machine import this_machine
from bubbleproof.reference_exec.gloo import run_gloo
from bubbleproof.reference_exec.oracle import are_equal, order_matched, single_threaded
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.rank import RankResult
from bubbleproof.reference_exec.replay import replay_plan, summed_replicas
from bubbleproof.reference_exec.spec import KINDS, ModelSpec
from bubbleproof.reference_exec.step import training_step
from bubbleproof.reference_exec.torch_runtime import run_torch_runtime
from bubbleproof.reference_exec.torch_table import as_pytorch_adds
from bubbleproof.theory.families import member
from bubbleproof.theory.lowering import lower

OURS, TORCH = "ours", "PyTorch"
TIMES = ("step", "whole")
LIMIT_S = 120.0
Run = Callable[..., list[RankResult]]
Seconds = dict[str, dict[str, list[float]]]  # by executor and time


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    seconds = measure(plan, options.repeats, Console(stderr=True))
    told = {
        "family": options.family,
        "ranks": plan.num_ranks,
        "microbatches": plan.num_microbatches,
        "model": {
            name: getattr(plan.spec, name)
            for name in ("kind", "hidden", "layers", "heads", "sequence", "batch", "dtype")
        },
        "seconds": seconds,
        "ratios": {name: ratio(seconds, name) for name in TIMES},
        "machine": this_machine().to_json(),
    }
    sys.stdout.write((json.dumps(told, indent=2) if options.json else _text(told)) + "\n")


def measure(plan: Plan, repeats: int, console: Console) -> Seconds:
    """Wall-clock seconds of ``repeats`` pairs. Raises ``RuntimeError`` where bits are wrong."""
    with single_threaded():
        wanted = {OURS: order_matched(plan)[0], TORCH: order_matched(as_pytorch_adds(plan))[0]}
    runs: dict[str, Run] = {OURS: run_gloo, TORCH: run_torch_runtime}
    seconds: Seconds = {name: {kind: [] for kind in TIMES} for name in runs}
    for name in (TORCH, OURS):  # the server of processes has loaded what its first run needs
        _timed(runs[name], plan)
    for pair in range(repeats):
        for name in (OURS, TORCH) if pair % 2 == 0 else (TORCH, OURS):
            with console.status(f"pair {pair + 1} of {repeats}: {name}"):
                results, times = _timed(runs[name], plan)
            if not are_equal(summed_replicas(results), wanted[name]):
                raise RuntimeError(f"{name}: gradients are not those of the oracle")
            for kind, value in times.items():
                seconds[name][kind].append(value)
    return seconds


def ratio(seconds: Seconds, kind: str) -> float:
    """The median over pairs of our time divided by PyTorch's."""
    pairs = zip(seconds[OURS][kind], seconds[TORCH][kind], strict=True)
    return median(ours / theirs for ours, theirs in pairs)


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
    return replay_plan(found.problem, training_step(found.problem), found.schedule, lowered, spec)


def _text(told: dict[str, object]) -> str:
    seconds, ratios, model = told["seconds"], told["ratios"], told["model"]
    assert isinstance(seconds, dict)
    assert isinstance(model, dict)
    assert isinstance(ratios, dict)
    lines = [
        f"{told['family']}, {told['ranks']} ranks, {told['microbatches']} microbatches; "
        + ", ".join(f"{name} {value}" for name, value in model.items()),
        f"on {this_machine()}",
    ]
    for kind in TIMES:
        parts = [
            f"{name} {1000 * median(seconds[name][kind]):.0f} ms "
            f"({1000 * min(seconds[name][kind]):.0f} to {1000 * max(seconds[name][kind]):.0f})"
            for name in (OURS, TORCH)
        ]
        lines.append(f"{kind}: {', '.join(parts)}; ours / PyTorch's {ratios[kind]:.2f}")
    return "\n".join(lines)


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
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
