"""How long ``bubbleproof verify`` takes on a large schedule, beside PyTorch's own chain.

    python -m benchmarks.verify_speed [--json] [--ranks 64 --microbatches 1024 --chunks 4]
                                      [--before FOLDER]

Whole processes that take turns, from nothing to the verdict. Ours is the command: it makes the
order of interleaved 1F1B with its starts, and decides every rule. PyTorch's (``speed_torch``) makes
the same order, validates it, adds messages and simulates them. Then rules 1 to 5 and 8 alone beside
a plain pass of numpy (``speed_ours``), and what small commands take beside ``import torch``.
``--before`` is another checkout of this repository, whose command takes its turn too. All of them
find the byte code of what they import, as installed packages do, in a folder of this run.
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

from benchmarks.child_process import answers, commit_of
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
    before: Annotated[
        Path | None, typer.Option(help="Another checkout to compare with.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure and print; see the module's text."""
    if before is not None and not (before / "bubbleproof" / "__init__.py").is_file():
        raise typer.BadParameter(f"--before takes a checkout of this repository, got {before}")
    console = Console(stderr=True)
    shape = ranks, microbatches, chunks
    with tempfile.TemporaryDirectory() as folder:
        begun = _starts(starts, Path(folder), console)
        spent, steps = _commands(shape, repeats, before, Path(folder), console)
    with console.status("rules 1 to 5 and 8"):
        [alone] = answers(HOUR, measure_check, *shape, repeats)
    told = {
        "machine": this_machine().to_json(),
        "size": {"ranks": ranks, "microbatches": microbatches, "chunks": chunks},
        **{name: each._asdict() for name, each in spent.items()},
        "torch_steps": steps,
        **alone,
        "starts": begun,
    }
    if json:
        sys.stdout.write(dumps(told, indent=2) + "\n")
        return
    tasks = f"interleaved p={ranks} m={microbatches} v={chunks}: {int(steps['tasks'])} tasks"
    lines = [tasks, f"{this_machine()}\n", *_told(spent, steps, repeats, before)]
    ratio = alone["check_s"] / alone["plain_s"]
    rules = f"rules 1 to 5 and 8 alone (verify.check): {alone['check_s']:.3f} s of processor time"
    lines += [f"\n{rules}, {ratio:.2f} of a plain pass of numpy over the same arrays"]
    lines += [f"\nstarts, byte code kept, processor s (median of {starts}), of import torch"]
    torch = begun["import torch"]
    lines += [f"{value:>10.2f} {value / torch:>8.2f}   {name}" for name, value in begun.items()]
    sys.stdout.write("\n".join(lines) + "\n")


def _commands(
    shape: Sequence[int], repeats: int, before: Path | None, folder: Path, console: Console
) -> tuple[dict[str, Spent], dict[str, float]]:
    """What each program took by name, medians of rounds, and the steps of PyTorch's last."""
    p, m, v = shape
    command = ("bubbleproof", "verify", "interleaved", f"p={p}", f"m={m}", f"v={v}")
    programs = {
        "ours": (sys.executable, "-m", *command),
        "torch": (sys.executable, "-m", "benchmarks.speed_torch", *map(str, shape)),
    }
    if before is not None:  # -P: what is in the folder of now is not found first
        programs = {"before": (sys.executable, "-P", "-m", *command), **programs}
    found: dict[str, list[Spent]] = {name: [] for name in programs}
    out = {}
    for index in range(repeats):
        for name, words in programs.items():
            with console.status(f"round {index + 1} of {repeats}: {name}"):
                path = before if name == "before" else None
                spent, out[name] = spent_by(*words, environment=_environment(folder, path))
            found[name].append(spent)
    medians = {
        name: Spent(*map(median, zip(*rounds, strict=True))) for name, rounds in found.items()
    }
    return medians, loads(out["torch"])


def _environment(folder: Path, path: Path | None = None) -> dict[str, str]:
    """That of a program whose byte code is kept in a folder; ``path`` is where to look first."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    first = {} if path is None else {"PYTHONPATH": str(path.resolve())}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), **first}


def _starts(rounds: int, folder: Path, console: Console) -> dict[str, float]:
    """Processor seconds of small commands, medians of rounds after one that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in STARTS}
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "plan.toml").write_text(PLAN)
    with console.status("starts"):
        for _ in range(1 + rounds):
            for name, words in STARTS.items():
                placed = (str(folder / w) if w.endswith(".toml") else w for w in words)
                spent, _ = spent_by(*placed, environment=_environment(folder))
                found[name].append(spent.processor)
    return {name: median(values[1:]) for name, values in found.items()}


def spent_by(*words: str, environment: Mapping[str, str]) -> tuple[Spent, str]:
    """What a program took, and its standard output. Raises ``ChildProcessError`` where it fails."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        process = os.posix_spawn(words[0], words, environment, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
        wall = time.perf_counter() - begin
        if status:
            raise ChildProcessError(f"{' '.join(words)} ended with {status}")
        out.seek(0)
        spent = Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
        return spent, out.read().decode()


def _told(
    spent: Mapping[str, Spent], steps: Mapping[str, float], repeats: int, before: Path | None
) -> Iterator[str]:
    yield f"whole processes, median of {repeats}"
    yield f"{'wall s':>10} {'processor s':>12} {'MiB':>6}"
    parts = ", ".join(f"{name} {value:.1f}" for name, value in steps.items() if name != "tasks")
    ours = "bubbleproof verify: every rule"
    of_before = "" if before is None else f"the same before ({commit_of(before) or before.name})"
    whats = {"before": of_before, "ours": ours, "torch": f"PyTorch: {parts}"}
    for name, each in spent.items():
        yield f"{each.wall:>10.2f} {each.processor:>12.2f} {each.mib:>6.0f}   {whats[name]}"
    for name, what in {"before": "before / ours", "torch": "PyTorch's / ours"}.items():
        if name in spent:
            wall, processor, mib = (a / b for a, b in zip(spent[name], spent["ours"], strict=True))
            yield f"{wall:>10.1f} {processor:>12.1f} {mib:>6.1f}   {what}"


if __name__ == "__main__":
    typer.run(main)
