"""How long ``verify`` takes on a large schedule, beside PyTorch's own validator and simulator.

    python -m benchmarks.verify_speed [--json] [--ranks 64 --microbatches 1024 --chunks 4]

The table is interleaved 1F1B, the same one for all. Each side runs in a process of its own; memory
is that of our process, which imports no torch. Times are wall-clock seconds, the least of several
repetitions where that is cheap (see ``MEASURED``). A time says nothing of a machine that does other
work at the same time, so nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from benchmarks.machine import Machine, this_machine

ROOT = Path(__file__).parents[1]
MEBIBYTE = 1 << 20
MEASURED = {
    "build_s": "build: Pipeline, Problem, the order, left-shifted starts (least of {repeats})",
    "check_s": "check: verify.check, rules 1 to 5 and 8 (least of {repeats})",
    "peak_resident_mib": "peak resident memory of one build and check, imports included, MiB",
    "validate_s": "PyTorch _validate_schedule: counts actions per stage (least of {repeats})",
    "lower_s": "PyTorch _add_send_recv: adds SEND and RECV (once)",
    "simulate_s": "PyTorch _simulate_comms_compute: runs the lowered table (once)",
    "rule6_s": "verify.check_communication, buffered, on the same lowered table (once)",
}
RATIOS = {
    "_validate_schedule / check": ("validate_s", "check_s"),
    "_simulate_comms_compute / check": ("simulate_s", "check_s"),
    "_add_send_recv + _simulate_comms_compute / build + check": ("run_s", "ours_s"),
    "_simulate_comms_compute / check_communication": ("simulate_s", "rule6_s"),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    size = [str(options.ranks), str(options.microbatches), str(options.chunks)]
    with console.status("our build and check"):
        measured = _ours(size, options.repeats)
    with console.status(f"PyTorch's functions, at most {options.limit} s"):
        steps, note = _lines(["benchmarks.speed_torch", *size, str(options.repeats)], options.limit)
    simulated = [step for step in steps if "simulate_s" in step]
    for step in steps:
        measured |= {name: value for name, value in step.items() if name in MEASURED}
    full = bool(simulated) and simulated[-1]["tasks"] == measured["tasks"]
    if not full:
        measured.pop("simulate_s", None)  # only full-size numbers are compared
    ratios = _ratios(measured)
    machine = this_machine()
    if options.json:
        content = {
            "machine": machine.to_json(),
            "size": {"ranks": options.ranks, "microbatches": options.microbatches,
                     "chunks": options.chunks},
            "measured": measured,
            "simulator": simulated,
            "ratios": ratios,
            "note": note,
        }  # fmt: skip
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    else:
        sys.stdout.write(_text(options, machine, measured, simulated, ratios, note))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.verify_speed")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=1024)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600, help="seconds PyTorch's side may take")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    return parser


def _ours(size: list[str], repeats: int) -> dict[str, float]:
    """Our times from a process that repeats, our memory from one that builds and checks once."""
    command = ["benchmarks.speed_ours", *size]
    (timed, *_), _ = _lines([*command, str(repeats)], None)
    (once, *_), _ = _lines([*command, "1"], None)
    return {
        "tasks": timed["tasks"],
        "build_s": timed["build_s"],
        "check_s": timed["check_s"],
        "peak_resident_mib": once["peak_resident_bytes"] / MEBIBYTE,
    }


def _lines(command: list[str], limit: float | None) -> tuple[list[dict[str, float]], str]:
    """The JSON lines a module prints, and why they may be few: a time limit or no torch."""
    child = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    note = ""
    try:
        output, errors = child.communicate(timeout=limit)
        if child.returncode:
            note = (errors.strip().splitlines() or ["no output"])[-1]
    except subprocess.TimeoutExpired:
        child.kill()
        output, _ = child.communicate()
        note = f"stopped after the limit of {limit} s; what is missing was not reached"
    found = [json.loads(line) for line in output.splitlines()]
    if not found and limit is None:
        raise RuntimeError(f"{' '.join(command)}: {note}")
    return found, note


def _ratios(measured: Mapping[str, float]) -> dict[str, float]:
    known = dict(measured)
    known["ours_s"] = known["build_s"] + known["check_s"]
    if "simulate_s" in known and "lower_s" in known:
        known["run_s"] = known["lower_s"] + known["simulate_s"]
    return {
        name: known[top] / known[bottom]
        for name, (top, bottom) in RATIOS.items()
        if top in known and bottom in known
    }


def _text(
    options: argparse.Namespace,
    machine: Machine,
    measured: Mapping[str, float],
    simulated: list[dict[str, float]],
    ratios: Mapping[str, float],
    note: str,
) -> str:
    size = f"p={options.ranks} m={options.microbatches} v={options.chunks}"
    lines = [f"interleaved {size}: {int(measured['tasks'])} tasks", str(machine), ""]
    for name, meaning in MEASURED.items():
        if name in measured:
            unit = "MiB" if name.endswith("_mib") else "s"
            text = meaning.format(repeats=options.repeats)
            lines.append(f"{measured[name]:>10.3f} {unit:<4} {text}")
    lines.append("\nthe simulator at each size it finished:")
    for step in simulated:
        which = f"m={int(step['microbatches'])}, {int(step['tasks'])} tasks"
        lines.append(f"{step['simulate_s']:>10.3f} s    {which}")
    lines.append("\nratios of seconds at the full size (above 1: ours takes less time):")
    lines += [f"{value:>10.2f} x    {name}" for name, value in ratios.items()]
    return "\n".join(lines + ([f"\nPyTorch's side: {note}"] if note else [])) + "\n"


if __name__ == "__main__":
    main()
