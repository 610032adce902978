"""The solver benchmark: every named instance through every engine, beside two plain encodings.

    python -m benchmarks.solvers [--engines auto,cpsat,...] [--time-limit 60] [--only PATTERN]
                                 [--workers 1] [--threads 2] [--write docs/measured/solvers.md]

Instances run in order of their number of tasks. An engine other than ``auto`` that ran out of time
on two instances of a group is skipped on the larger ones of that group, after five instances on
all larger ones. Ctrl-C ends it with what was measured. Exit status 1 where engines contradict each
other.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import typer
from rich.progress import Progress

from benchmarks.instances import Instance, instances
from benchmarks.markdown import CLOCK, put_out
from benchmarks.solver_runs import PLAIN, Run, Runner, can_run
from benchmarks.solver_tables import SKIPPED, main_table, ratio_table, summary
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.solvers import ENGINES

COLUMNS = ("auto", *ENGINES, *PLAIN)
USUAL = tuple(engine for engine in COLUMNS if engine != "pulp-cbc")  # CBC has a plain column
MOST_FAILURES, MOST_IN_ALL = 2, 5
GRACE = 30.0  # seconds beyond twice the limit until a run is killed
NAP = 0.2  # seconds; Ctrl-C may not wake a longer one
Measure = Callable[[Instance, str], Run]
PACKAGES = ("bubbleproof", "ortools", "python-sat", "z3-solver", "pulp", "numpy")


def chosen_instances(pattern: str) -> list[Instance]:
    """The instances whose name contains the pattern (shell wildcards), the smallest first."""
    found = [i for i in instances() if fnmatch.fnmatchcase(i.name, f"*{pattern}*")]
    return sorted(found, key=lambda instance: instance.problem().num_tasks)


class Settings(NamedTuple):
    """What the page says of how it was measured."""

    time_limit: float
    threads: int
    workers: int
    write: Path | None
    only: str


class Bench:
    """The runs so far, and who has failed too often to go on."""

    def __init__(self, run: Measure) -> None:
        self.run = run
        self.runs: dict[tuple[str, str], Run] = {}
        self.failures: Counter[tuple[str, str]] = Counter()

    def measure(self, chosen: Sequence[Instance], engine: str) -> Iterator[Run]:
        """One engine on the instances, in the order given."""
        for instance in chosen:
            if not can_run(instance, engine):
                continue
            if engine != "auto" and self._has_failed(engine, instance.group):
                run = Run(instance=instance.name, engine=engine, note=SKIPPED)
            else:
                run = self.run(instance, engine)
                self.failures[engine, instance.group] += not run.is_closed
            self.runs[instance.name, engine] = run
            yield run

    def _has_failed(self, engine: str, group: str) -> bool:
        in_all = sum(count for (name, _), count in self.failures.items() if name == engine)
        return self.failures[engine, group] >= MOST_FAILURES or in_all >= MOST_IN_ALL


def measure_all(
    chosen: Sequence[Instance],
    engines: Sequence[str],
    run: Measure,
    workers: int = 1,
    stopped: threading.Event | None = None,
) -> dict[tuple[str, str], Run]:
    """Every engine on every instance; with several workers, engines side by side.

    After Ctrl-C, which sets ``stopped``, what has been measured by the end of the current runs.
    """
    stopped = stopped or threading.Event()
    benches: list[Bench] = []
    with Progress(disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("solving", total=len(chosen) * len(engines))

        def one(engine: str) -> None:
            if stopped.is_set():
                return
            bench = Bench(run)
            benches.append(bench)
            for done in bench.measure(chosen, engine):
                progress.update(bar, advance=1, description=f"{engine}: {done.instance}")
                if stopped.is_set():
                    break

        with ThreadPoolExecutor(workers) as pool:
            try:
                for future in [pool.submit(one, engine) for engine in engines]:
                    while not wait([future], timeout=NAP).done:
                        pass
                    future.result()
            except KeyboardInterrupt:
                stopped.set()
                pool.shutdown(cancel_futures=True)
    return {key: done for bench in benches for key, done in bench.runs.items()}


def title(engines: Sequence[str]) -> str:
    """What the page is called: by its engines where they are not the usual ones."""
    who = "The solvers" if tuple(engines) == USUAL else ", ".join(engines)
    return f"{who} on named instances"


def page(
    chosen: Sequence[Instance],
    engines: Sequence[str],
    runs: dict[tuple[str, str], Run],
    settings: Settings,
) -> str:
    """The whole page."""
    named = "" if tuple(engines) == USUAL else f' --engines "{",".join(engines)}"'
    named += f' --only "{settings.only}"' if settings.only else ""
    lines = [
        f"# {title(engines)}",
        "",
        f"Generated by `python -m benchmarks.solvers --time-limit {settings.time_limit:g}"
        f" --threads {settings.threads} --workers {settings.workers}{named}"
        f" --write {settings.write}`; not edited.",
        "",
        f"{this_machine(PACKAGES)}.",
        f"Load over the last 15 minutes: {os.getloadavg()[2]:.1f}; above {settings.threads} other",
        "programs ran beside the engines, and times are longer by that.",
        "",
        f"Limit {settings.time_limit:g} s, {settings.threads} threads, {settings.workers} at once.",
        "Times are wall-clock seconds to the optimum and its proof, which is a certificate that",
        "`verify` checked or the engine's word. `[bound, best]`: the limit was reached. Engines",
        "begin from the bounds and the schedule that `auto` has when it calls its own; the plain",
        f"encodings begin from nothing. Who failed on {MOST_FAILURES} instances of a group is",
        f"`{SKIPPED}` on its larger ones, and after {MOST_IN_ALL} failures on all larger ones. The",
        "instances are described in `benchmarks/instances.py`.",
        "",
        CLOCK,
        "",
        *summary(chosen, runs),
        "",
        main_table(chosen, engines, runs),
    ]
    if set(PLAIN) & set(engines):
        lines += [
            "## Against plain encodings",
            "",
            "The same instances without any of the modelling: integer starts and disjunctions in",
            "`z3.Optimize` (as Tessel searches), and a big-M MILP on CBC (as the zero-bubble",
            "papers'). Seconds to the proof, divided by those of `auto`; `>`: it ran out of time.",
            "",
            ratio_table(chosen, engines, runs, settings.time_limit),
        ]
    return "\n".join(lines)


def main(
    engines: str = ",".join(USUAL),
    time_limit: float = 60.0,
    only: str = "",
    workers: int = 1,
    threads: int = 2,
    write: Path | None = None,
) -> None:
    """Measure, and write or print the page; see the module's text."""
    named = engines.split(",")
    if unknown := sorted(set(named) - set(COLUMNS)):
        raise typer.BadParameter(f"engines must be of {', '.join(COLUMNS)}, got {unknown[0]}")
    chosen = chosen_instances(only)
    if not chosen:
        raise typer.BadParameter(f"no instance's name contains {only!r}")
    settings = Settings(time_limit, threads, workers, write, only)
    runner = Runner(seconds=time_limit, threads=threads, patience=2 * time_limit + GRACE)
    try:
        text = page(chosen, named, measure_all(chosen, named, runner.run, workers), settings)
    except ValueError as contradiction:
        sys.stderr.write(f"{contradiction}\n")
        raise typer.Exit(1) from None
    put_out(text, write)


if __name__ == "__main__":
    typer.run(main)
