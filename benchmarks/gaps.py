"""The gap benchmark: large and tightly capped instances, before and after, paired in one run.

    python -m benchmarks.gaps [--before FOLDER] [--time-limit 60] [--threads 2] [--only TEXT]
                              [--write FILE.md]

``gap_instances.csv`` lists them: ranks, microbatches, chunks, placement, split, ticks of F, B (or
F, I, W), latency, cap in activations, and stages with ticks of their own. The gap is (makespan -
bound) / bound. ``--before`` is another checkout of this repository: each instance is solved by it
and by this one in turn, in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.gap_run import instances
from benchmarks.markdown import markdown_table
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

HERE = Path(__file__).parents[1]
PATIENCE = 60.0  # seconds beyond three times the limit until a run is given up
PACKAGES = ("bubbleproof", "ortools", "python-sat", "numpy")
HEADER = ("instance", "tasks", "makespan", "bound", "gap", "first s", "s", "found by")


def measured(folder: Path, name: str, settings: argparse.Namespace) -> dict[str, Any] | None:
    """What one checkout makes of an instance; None where it died or was given up."""
    command = [sys.executable, str(Path(__file__).with_name("gap_run.py")), name]
    command += ["--time-limit", str(settings.time_limit), "--threads", str(settings.threads)]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True,
            timeout=3 * settings.time_limit + PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return found


def gap(found: dict[str, Any] | None) -> float | None:
    """(makespan - bound) / bound, None without a schedule."""
    if found is None or found["makespan"] is None:
        return None
    return float((found["makespan"] - found["bound"]) / found["bound"])


def cells(found: dict[str, Any] | None) -> list[str]:
    """The columns from makespan on."""
    if found is None:
        return ["given up", *[""] * 5]
    share = gap(found)
    return [
        "none" if found["makespan"] is None else str(found["makespan"]),
        str(found["bound"]),
        "" if share is None else f"{share:.2%}",
        "" if found["first"] is None else f"{found['first']:.2f}",
        f"{found['seconds']:.1f}",
        found["origin"],
    ]


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, measure, and write or print the table."""
    settings = _parser().parse_args(arguments)
    folders = [HERE] if settings.before is None else [settings.before, HERE]
    rows = []
    for name in sorted((name for name in instances() if settings.only in name), key=_num_tasks):
        for folder in folders:
            found = measured(folder, name, settings)
            who = "" if settings.before is None else ", after" if folder == HERE else ", before"
            tasks = "" if found is None else str(found["tasks"])
            rows.append([f"{name}{who}", tasks, *cells(found)])
            sys.stderr.write(" ".join(rows[-1]) + "\n")
        if settings.write is not None:
            settings.write.write_text(_page(settings, rows), encoding="utf-8")
    if settings.write is None:
        sys.stdout.write(_page(settings, rows))
    return 0


def _page(settings: argparse.Namespace, rows: list[list[str]]) -> str:
    limits = f"Limit {settings.time_limit:g} s, {settings.threads} threads."
    return f"{this_machine(PACKAGES)}. {limits}\n\n{markdown_table(HEADER, rows)}"


def _num_tasks(name: str) -> int:
    """As many as a row has, to begin with the smallest."""
    row = instances()[name]
    return int(row["p"]) * int(row["m"]) * int(row["v"]) * (2 + int(row["split"]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Gaps on large and tightly capped instances.")
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per run")
    parser.add_argument("--threads", type=int, default=2, help="threads per run")
    parser.add_argument("--only", default="", help="part of the instances' names")
    parser.add_argument("--write", type=Path, help="the Markdown file to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
