"""How long ``bubbleproof verify`` takes on a large schedule, beside PyTorch's own chain.

    python -m benchmarks.verify_speed [--json] [--ranks 64 --microbatches 1024 --chunks 4]

Whole processes that take turns, from nothing to the verdict. Ours is the command: it makes the
order of interleaved 1F1B with its starts, and decides every rule. PyTorch's (``speed_torch``) makes
the same order, validates it, adds messages and simulates them. Then rules 1 to 5 and 8 alone beside
a plain pass of numpy (``speed_ours``), and what small commands take beside ``import torch``.
Processor time hardly depends on what else the machine does, wall-clock time does; so nothing here
passes or fails.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from json import dumps, loads
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from benchmarks.child_process import answers
from benchmarks.speed_ours import measure_check
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

HOUR = 3600
COMMAND = (sys.executable, "-m", "bubbleproof")
PROBLEM = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = 1\nbackward = 2\n"
PLAN = f"{PROBLEM}[plan]\nchunks = [1, 2]\n"
STARTS = {
    "import torch": (sys.executable, "-c", "import torch"),
    "verify 1f1b p=4 m=8": (*COMMAND, "verify", "1f1b", "p=4", "m=8"),
    "solve of 6 forwards": (*COMMAND, "solve", "problem.toml"),
    "plan of 2 shapes of it": (*COMMAND, "plan", "plan.toml"),
}


class Spent(NamedTuple):
    """What a process took: seconds, those of all its processors, and its peak of memory in MiB."""

    wall: float
    processor: float
    mib: float


def main(
    ranks: int = 64,
    microbatches: int = 1024,
    chunks: int = 4,
    repeats: int = 3,
    starts: int = 9,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure and print; see the module's text."""
    console = Console(stderr=True)
    shape = ranks, microbatches, chunks
    ours, theirs, steps = _commands(shape, repeats, console)
    with console.status("rules 1 to 5 and 8"):
        [alone] = answers(HOUR, measure_check, *shape, repeats)
    begun = _starts(starts, console)
    told = {
        "machine": this_machine().to_json(),
        "size": {"ranks": ranks, "microbatches": microbatches, "chunks": chunks},
        "ours": ours._asdict(),
        "torch": theirs._asdict(),
        "torch_steps": steps,
        **alone,
        "starts": begun,
    }
    if json:
        sys.stdout.write(dumps(told, indent=2) + "\n")
        return
    tasks = f"interleaved p={ranks} m={microbatches} v={chunks}: {int(steps['tasks'])} tasks"
    lines = [tasks, f"{this_machine()}\n", *_told(ours, theirs, steps, repeats)]
    ratio = alone["check_s"] / alone["plain_s"]
    rules = f"rules 1 to 5 and 8 alone (verify.check): {alone['check_s']:.3f} s of processor time"
    lines += [f"\n{rules}, {ratio:.2f} of a plain pass of numpy over the same arrays"]
    lines += [f"\nstarts, processor s (median of {starts}), of import torch"]
    torch = begun["import torch"]
    lines += [f"{value:>10.2f} {value / torch:>8.2f}   {name}" for name, value in begun.items()]
    sys.stdout.write("\n".join(lines) + "\n")


def _commands(
    shape: Sequence[int], repeats: int, console: Console
) -> tuple[Spent, Spent, dict[str, float]]:
    """What ours and PyTorch's took, medians of rounds, and the steps of PyTorch's last."""
    p, m, v = shape
    ours, theirs = [], []
    words = ("verify", "interleaved", f"p={p}", f"m={m}", f"v={v}")
    for index in range(repeats):
        with console.status(f"round {index + 1} of {repeats}: bubbleproof verify"):
            ours.append(spent_by(*COMMAND, *words)[0])
        with console.status(f"round {index + 1} of {repeats}: PyTorch's chain"):
            chain = (sys.executable, "-m", "benchmarks.speed_torch", *map(str, shape))
            spent, out = spent_by(*chain)
            theirs.append(spent)
    medians = (Spent(*map(median, zip(*rounds, strict=True))) for rounds in (ours, theirs))
    return *medians, loads(out)


def _starts(rounds: int, console: Console) -> dict[str, float]:
    """Processor seconds of small commands, medians."""
    found: dict[str, list[float]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as folder, console.status("starts"):
        (Path(folder) / "problem.toml").write_text(PROBLEM)
        (Path(folder) / "plan.toml").write_text(PLAN)
        for _ in range(rounds):
            for name, words in STARTS.items():
                placed = (str(Path(folder) / w) if w.endswith(".toml") else w for w in words)
                found[name].append(spent_by(*placed)[0].processor)
    return {name: median(values) for name, values in found.items()}


def spent_by(*words: str) -> tuple[Spent, str]:
    """What a program took, and its standard output. Raises ``ChildProcessError`` where it fails."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        process = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
        wall = time.perf_counter() - begin
        if status:
            raise ChildProcessError(f"{' '.join(words)} ended with {status}")
        out.seek(0)
        spent = Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
        return spent, out.read().decode()


def _told(ours: Spent, theirs: Spent, steps: Mapping[str, float], repeats: int) -> Iterator[str]:
    yield f"whole processes, median of {repeats}"
    yield f"{'wall s':>10} {'processor s':>12} {'MiB':>6}"
    parts = ", ".join(f"{name} {value:.1f}" for name, value in steps.items() if name != "tasks")
    for spent, what in ((ours, "bubbleproof verify: every rule"), (theirs, f"PyTorch: {parts}")):
        yield f"{spent.wall:>10.2f} {spent.processor:>12.2f} {spent.mib:>6.0f}   {what}"
    ratios = [of / to for of, to in zip(theirs, ours, strict=True)]
    yield f"{ratios[0]:>10.1f} {ratios[1]:>12.1f} {ratios[2]:>6.1f}   PyTorch's / ours"


if __name__ == "__main__":
    typer.run(main)
