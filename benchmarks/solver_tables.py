"""The tables of the solver benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.instances import Instance
from benchmarks.markdown import markdown_table
from benchmarks.solver_runs import PLAIN, Run

Runs = Mapping[tuple[str, str], Run]
SKIPPED = "skipped"


def optimum(runs: Runs, instance: str) -> int | None:
    """The value that some engine proved, None where none did.

    Raises ``ValueError`` where two engines prove different ones, or one a bound that another's
    schedule beats.
    """
    own = [run for (name, _), run in runs.items() if name == instance]
    proved = {run.value for run in own if run.is_closed}
    values = [run.value for run in own if run.value is not None]
    if len(proved) > 1 or any(run.bound > value for run in own for value in values):
        said = ", ".join(f"{run.engine} [{run.bound}, {run.value}]" for run in own)
        raise ValueError(f"{instance}: engines contradict each other: {said}")
    return proved.pop() if proved else None


def shown_seconds(seconds: float) -> str:
    """Two digits after the point below ten seconds, one beyond."""
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def shown(run: Run | None) -> str:
    """Seconds to the proof; else the gap, in brackets, or why there is none."""
    if run is None:
        return ""
    if run.note:
        return run.note
    if run.is_closed:
        return shown_seconds(run.seconds)
    return f"[{run.bound}, {'-' if run.value is None else run.value}]"


def main_table(chosen: Sequence[Instance], engines: Sequence[str], runs: Runs) -> str:
    """A row per instance: its optimum and proof by ``auto``, and every engine's time or gap."""
    rows = []
    for instance in chosen:
        best = optimum(runs, instance.name)
        auto = runs.get((instance.name, "auto"))
        proof = "" if auto is None else auto.proof
        cells = [shown(runs.get((instance.name, engine))) for engine in engines]
        tasks = instance.problem().num_tasks
        rows.append([instance.name, tasks, "?" if best is None else best, proof, *cells])
    header = ["instance", "tasks", "optimum", "proof of `auto`", *(f"{e} s" for e in engines)]
    return markdown_table(header, rows)


def summary(chosen: Sequence[Instance], runs: Runs) -> list[str]:
    """What ``auto`` did on the 49 and on the others, one sentence each."""
    lines = []
    for words, in_table in (("of the table", True), ("beside it", False)):
        own = [
            run
            for instance in chosen
            if instance.in_table is in_table
            and (run := runs.get((instance.name, "auto"))) is not None
        ]
        if own:
            closed = [run for run in own if run.is_closed]
            certified = sum(run.proof == "certificate" for run in closed)
            total, longest = sum(run.seconds for run in own), max(run.seconds for run in own)
            lines.append(
                f"`auto` closes {len(closed)} of the {len(own)} instances {words}, {certified} "
                f"with a certificate, in {total:.1f} s; the longest takes {longest:.1f} s."
            )
    return lines


def ratio(auto: Run | None, plain: Run | None, limit: float) -> str:
    """How many times longer the plain encoding took than ``auto``; ``>`` where it ran out."""
    if auto is None or plain is None or not auto.is_closed or plain.note == SKIPPED:
        return ""
    if plain.is_closed:
        return f"{plain.seconds / auto.seconds:.1f}"
    return f"> {max(limit, plain.seconds) / auto.seconds:.1f}"


def ratio_table(
    chosen: Sequence[Instance], engines: Sequence[str], runs: Runs, limit: float
) -> str:
    """A row per instance that a plain encoding was tried on."""
    plain = [engine for engine in PLAIN if engine in engines]
    rows = []
    for instance in chosen:
        auto = runs.get((instance.name, "auto"))
        cells = [ratio(auto, runs.get((instance.name, name)), limit) for name in plain]
        if any(cells) and auto is not None:
            rows.append([instance.name, shown_seconds(auto.seconds), *cells])
    return markdown_table(["instance", "auto s", *(f"{name} / auto" for name in plain)], rows)
