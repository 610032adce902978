"""A run's traces beside the schedule that was to run: which files, where another order ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.format_table import Holds, endings, listed
from bubbleproof.theory.model.schedule import Program
from bubbleproof.traces.stragglers import StageKind
from bubbleproof.traces.traced_steps import COMPUTE, TracedJob


def trace_files(files: Sequence[str]) -> list[str]:
    """The files, and those of the folders among them, by name."""
    found, known = list[str](), endings(Holds.TRACE)
    for each in files:
        path = Path(each)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.name.endswith(known))
            if not inside:
                raise ValueError(f"{each}: expected traces ending in {listed(known)}, found none")
            found += map(str, inside)
        else:
            found.append(each)
    return found


def other_order(job: TracedJob, given: ScheduleFile) -> list[str]:
    """Where the ranks ran another order than the schedule's, the first place of each rank."""
    wanted = _orders(given.compute, given.problem.num_ranks)
    if len(wanted) != job.num_ranks:
        return [f"{given.name} has {len(wanted)} ranks, {job.num_ranks} were traced"]
    found = []
    for rank, (own, planned) in enumerate(
        zip(_orders(job.program, job.num_ranks), wanted, strict=True)
    ):
        pairs = zip([*own, ""], [*planned, ""], strict=False)
        place = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        if place is not None:
            ran, meant = [*own, "nothing"][place], [*planned, "nothing"][place]
            found.append(f"rank {rank} ran {ran} as its computation {place}, not {meant}")
    return found


def _orders(program: Program, ranks: int) -> list[list[str]]:
    return [[str(a) for a in order if a.kind in COMPUTE] for order in program.orders(ranks)]


def durations(given: ScheduleFile) -> dict[StageKind, float]:
    """The ticks that the schedule's problem has for each stage and kind."""
    rows = zip(given.problem.actions, given.problem.duration.tolist(), strict=True)
    return {(action.stage, action.kind): float(ticks) or 1.0 for action, ticks in rows}
