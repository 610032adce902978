"""One instance of ``benchmarks.gaps`` on whichever bubbleproof is first on the path.

    python benchmarks/gap_run.py NAME --file gap_instances.csv --time-limit 60 --threads 2

Prints one JSON object: makespan, bound, seconds to the first schedule and in all. ``slow`` in the
file of instances names stages with ticks of their own, ``stage:forward/backward`` (or
``stage:F/I/W`` where backwards are split).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path

from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.solvers.shortening.known_orders import known_orders
from bubbleproof.theory.pipelines.pipeline import Pipeline

FILE = "gap_instances.csv"  # beside this module
MOST_PUBLISHED = 20_000  # tasks: beyond, published orders take longer to write than to solve


PROOFS = {  # classes of certificates, by the kinds that files call them
    "OneMachine": "one-machine",
    "OneStore": "one-store",
    "Volume": "volume",
    "Crossings": "crossings",
    "TickPrices": "prices",
    "MicrobatchWindows": "windows",
    "Drup": "drup",
}


def instances(file: str = FILE) -> dict[str, dict[str, str]]:
    """The rows of a file by name.

    Parameters
    ----------
    file
        The name of a file beside this module.
    """
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as lines:
        return {row["name"]: row for row in csv.DictReader(lines)}


def pipeline_of(row: dict[str, str]) -> Pipeline:
    """The pipeline that a row describes."""
    ranks, chunks = int(row["p"]), int(row["v"])
    usual = [int(ticks) for ticks in row["ticks"].split("/")]
    ticks = [usual] * (ranks * chunks)
    for entry in row["slow"].split():
        stage, own = entry.split(":")
        ticks[int(stage)] = [int(part) for part in own.split("/")]
    columns = [tuple(column) for column in zip(*ticks, strict=True)]
    names = ("forward", "input_backward", "weight_backward")
    is_split = row["split"] == "1"
    named = dict(zip(names if is_split else ("forward", "backward"), columns, strict=True))
    return Pipeline(
        num_ranks=ranks,
        num_microbatches=int(row["m"]),
        num_chunks=chunks,
        placement=row["placement"],
        split_backward=is_split,
        latency=int(row["latency"]),
        capacity=int(row["cap"]),
        **named,  # type: ignore[arg-type]  # ticks per stage alone
    )


def measured(
    pipeline: Pipeline, seconds: float, threads: int, work: float | None = None
) -> dict[str, object]:
    """Solve once; the first schedule counts from when the problem stands.

    Parameters
    ----------
    work
        Units of work at most, as ``SolveOptions`` has them; None for any.
    """
    problem = pipeline.problem()
    starts = known_orders(pipeline) if problem.num_tasks <= MOST_PUBLISHED else []
    first: list[float] = []

    def note(who: str, value: int | None, bound: int, now: float) -> None:
        del who, bound
        if value is not None and not first:
            first.append(now)

    began = time.perf_counter()
    options = SolveOptions(time_limit=seconds, threads=threads, work=work, progress=note)
    result = solve(problem, options, starts)
    return {
        "tasks": problem.num_tasks,
        "status": result.status.name,
        "makespan": result.makespan,
        "bound": result.best_bound,
        "certified": result.lower_bound,
        "proof": PROOFS.get(type(result.certificate).__name__, ""),
        "origin": result.origin,
        "first": first[0] if first else None,
        "seconds": time.perf_counter() - began,
    }


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="One instance of the gap benchmark.")
    parser.add_argument("name")
    parser.add_argument("--file", default=FILE)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=float)
    given = parser.parse_args()
    row = instances(given.file)[given.name]
    found = measured(pipeline_of(row), given.time_limit, given.threads, given.work)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
