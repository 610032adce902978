"""What ``plan`` answers in place of one plan: a table of jobs, two
deployments side by side, or the sheet of what is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.commands.output import counted
from bubbleproof.commands.planning.plan_answer import PlanAnswer, PlanTable
from bubbleproof.facts import FactSource
from bubbleproof.planners.assumption_sheet import AssumptionSheet
from bubbleproof.planners.planned import SearchResults
from bubbleproof.planners.side_by_side import SideBySide
from bubbleproof.planners.what_ifs import PlannedJobs
from bubbleproof.solvers import Status

NO_SEARCH = SearchResults(status=Status.FEASIBLE, seconds=0.0)
MOST_JOBS = 7  # rows of an answer's ten lines


def jobs_answer(found: PlannedJobs) -> PlanAnswer:
    """The best of the jobs, then each."""
    every = [one.cells for one in found.jobs]

    table = PlanTable(title=f"{found.name}: jobs", columns=found.HEADER, rows=every)
    best, planned = found.best, sum(one.plan is not None for one in found.jobs)
    of = f"{planned} of {counted(len(found.jobs), 'job')} have a plan"
    first = f"NO PLAN  {of}"
    if best is not None:
        _, _, _, _, rate, mfu, _, name = best.cells
        first = f"BEST     {best.change}: MFU {mfu}, {rate} tokens/s, {name}"
    shown = every if len(every) <= MOST_JOBS else every[: MOST_JOBS - 1]
    left = len(every) - len(shown)
    lines = [first, *aligned([found.HEADER, *shown])]
    lines += [f"and {counted(left, 'job')} more (--all); {of}"] if left else []
    return _answer(found.name, found, lines if left or best is None else [*lines, of], table)


def lines_answer(found: AssumptionSheet | SideBySide) -> PlanAnswer:
    """What the times rest on; or the difference of two, and where it comes from."""
    name, what = found.name, "side by side" if isinstance(found, SideBySide) else "assumptions"
    head, *rows = found.table()
    table = PlanTable(title=f"{name}: {what}", columns=head, rows=rows)
    return _answer(name, found, found.lines, table)


def _answer(name: str, found: FactSource, lines: Sequence[str], table: PlanTable) -> PlanAnswer:
    """Of what is a table of its own: its rows stand once."""
    status = found if isinstance(found, SearchResults) else NO_SEARCH
    stated = [replace(fact, label="") for fact in found.facts()]
    return PlanAnswer(
        name=name, found=status, lines=lines, stated=stated, candidates=lambda _: table, why=()
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell, the last as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join([*(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]
