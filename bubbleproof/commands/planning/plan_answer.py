"""What a plan answers with, of a problem file or of a model on a cluster, for ``plan`` and ``run``.

An answer is printed as tables or as one JSON object. Where a plan was found its folder holds
``plan.json``, ``schedule.json`` and the page ``plan.html``; its proofs are a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.output import BROKEN, HOLDS, UNDECIDED, print_table, print_text
from bubbleproof.planners import Plan, PlanOptions
from bubbleproof.planners.planned import SearchResults
from bubbleproof.report.page import ReportPage, write_page
from bubbleproof.solvers import Status

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: HOLDS,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}
Writer = Callable[[Path], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanTable:
    """A table for people; ``note`` explains its words."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanAnswer:
    """What became of everything that was tried (``tables``), what to run and how good it is.

    ``proofs`` writes what bounds every candidate; nothing does where nothing fits.
    """

    name: str
    found: SearchResults
    tables: Sequence[PlanTable]
    rows: Sequence[tuple[str, str]]
    to_json: Callable[[], dict[str, object]]
    proofs: tuple[Writer, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 found, 1 nothing fits, 3 undecided."""
        return EXIT[self.found.status]

    def with_plan(self, plan: Plan, write: Writer, report: Callable[[], ReportPage]) -> FoundAnswer:
        """The answer that a plan was found."""
        return FoundAnswer(
            name=self.name,
            found=self.found,
            tables=self.tables,
            rows=self.rows,
            to_json=self.to_json,
            proofs=self.proofs,
            plan=plan,
            write=write,
            report=report,
        )

    def print(self) -> None:
        """All of it for people."""
        columns = "quantity", "value"
        last = PlanTable(title=f"{self.name}: plan", columns=columns, rows=self.rows)
        for table in (*self.tables, last):
            print_table(table.title, table.columns, table.rows)
            if table.note:
                print_text(table.note)
        if self.found.reason:
            print_text(self.found.reason)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundAnswer(PlanAnswer):
    """A plan; ``plan`` is that of the pipeline that it runs.

    ``write`` writes the plan and its schedule, for ``verify``; ``report`` makes the page.
    """

    plan: Plan
    write: Writer
    report: Callable[[], ReportPage]

    @property
    def exit_status(self) -> int:
        """0, or 1 where the schedule breaks a rule."""
        return EXIT[self.found.status] if self.plan.verdict.ok else BROKEN

    def write_with_page(self, folder: Path) -> None:
        """The plan, its schedule and, unless a Ctrl-C came first, the page."""
        self.write(folder)
        if not is_interrupted():
            unless_interrupted(lambda: write_page(folder / "plan.html", self.report()), None)


class AskedPlan(Protocol):
    """A file that is planned, and the seconds that it gives a plan."""

    @property
    def time_limit(self) -> int | None: ...

    @property
    def memory(self) -> int | None: ...

    def answer(self, options: PlanOptions, executor: Executor | None = None) -> PlanAnswer:
        """Raises ``ValueError`` where a number forbids everything, with the nearest that works."""
