"""How long ``verify`` takes on a large schedule, beside PyTorch's own validator and simulator.

    python -m benchmarks.verify_speed [--json] [--ranks 64 --microbatches 1024 --chunks 4]

The table is interleaved 1F1B, the same one for all. Each side runs in a process of its own; memory
is that of our process, which imports no torch. Times are wall-clock seconds, the least of several
repetitions where that is cheap (see ``MEASURED``). A time says nothing of a machine that does other
work at the same time, so nothing here passes or fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from json import dumps
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.child_process import answers
from benchmarks.speed_ours import measure_ours
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

HOUR = 3600
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


def main(
    ranks: int = 64,
    microbatches: int = 1024,
    chunks: int = 4,
    repeats: int = 3,
    limit: Annotated[int, typer.Option(help="Seconds PyTorch's side may take.")] = 600,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure and print; see the module's text."""
    console = Console(stderr=True)
    size = {"ranks": ranks, "microbatches": microbatches, "chunks": chunks}
    shape = ranks, microbatches, chunks
    with console.status("our build and check"):
        measured = _ours(shape, repeats)
    with console.status(f"PyTorch's functions, at most {limit} s"):
        steps, note = _theirs(shape, repeats, limit)
    simulated = [step for step in steps if "simulate_s" in step]
    for step in steps:
        measured |= {name: value for name, value in step.items() if name in MEASURED}
    full = bool(simulated) and simulated[-1]["tasks"] == measured["tasks"]
    if not full:
        measured.pop("simulate_s", None)  # only full-size numbers are compared
    ratios = _ratios(measured)
    if json:
        told = {"machine": this_machine().to_json(), "size": size, "measured": measured}
        told |= {"simulator": simulated, "ratios": ratios, "note": note}
        sys.stdout.write(dumps(told, indent=2) + "\n")
        return
    lines = [
        f"interleaved p={ranks} m={microbatches} v={chunks}: {int(measured['tasks'])} tasks",
        f"{this_machine()}\n",
        *_told(measured, repeats),
        "\nthe simulator at each size it finished:",
        *(
            f"{step['simulate_s']:>10.3f} s    m={step['microbatches']}, {step['tasks']} tasks"
            for step in simulated
        ),
        "\nratios of seconds at the full size (above 1: ours takes less time):",
        *(f"{value:>10.2f} x    {name}" for name, value in ratios.items()),
        *([f"\nPyTorch's side: {note}"] if note else []),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _ours(size: tuple[int, int, int], repeats: int) -> dict[str, float]:
    """Our times from a process that repeats, our memory from one that builds and checks once."""
    timed, once = (next(answers(HOUR, measure_ours, *size, times)) for times in (repeats, 1))
    return {**timed, "peak_resident_mib": once["peak_resident_mib"]}


def _theirs(
    size: tuple[int, int, int], repeats: int, limit: int
) -> tuple[list[dict[str, float]], str]:
    """What was measured of PyTorch's functions, and why it may be little: the limit or no torch."""
    found: list[dict[str, float]] = []
    try:
        found += answers(limit, _measure_torch, *size, repeats)
    except (TimeoutError, ChildProcessError) as error:
        return found, f"{error}; what is missing was not reached"
    return found, ""


def _measure_torch(tell: Callable[[dict[str, float]], None], *given: int) -> None:
    from benchmarks.speed_torch import measure_torch  # torch is to stay out of our processes

    measure_torch(tell, *given)


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


def _told(measured: Mapping[str, float], repeats: int) -> Iterator[str]:
    for name, meaning in MEASURED.items():
        if name in measured:
            unit = "MiB" if name.endswith("_mib") else "s"
            yield f"{measured[name]:>10.3f} {unit:<4} {meaning.format(repeats=repeats)}"


if __name__ == "__main__":
    typer.run(main)
