"""What a plan answers with, of a problem file or of a model on a cluster, for ``plan`` and ``run``.

An answer states facts: ten lines of a terminal at most say what to run and how good it is; its
tables, the page and the JSON object have the rest. Where a plan was found its folder holds
``plan.json``, ``schedule.json`` and the page ``plan.html``; its proofs are a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.shared_options import ShownParts
from bubbleproof.commands.output import BROKEN, HOLDS, UNDECIDED, print_table, print_text
from bubbleproof.facts import Fact, FactCells, FactSource, extended, rows, tree
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
MORE = "(--all: every one, --why: what would change it, -v: the report)"
Writer = Callable[[Path], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanTable:
    """A table for people; ``note`` explains its words."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""

    def print(self) -> None:
        """The table and its note."""
        print_table(self.title, self.columns, self.rows)
        if self.note:
            print_text(self.note)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanAnswer(FactSource):
    """What to run and how good it is: the ``lines`` that say it, and all that is ``stated``.

    ``candidates`` is the table of what became of everything that was tried, the first rows or all;
    ``why`` has what would change the answer. ``proofs`` writes what bounds every candidate; nothing
    does where nothing fits.
    """

    name: str
    found: SearchResults
    lines: Sequence[str]
    stated: Sequence[Fact]
    candidates: Callable[[bool], PlanTable]
    why: Sequence[PlanTable]
    proofs: tuple[Writer, ...] = ()
    columns: ClassVar[FactCells] = ("quantity", "", "value", "")

    def facts(self) -> Sequence[Fact]:
        """All that it says."""
        return self.stated

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The summary for people."""
        return [(label, told) for label, _, told, _ in rows(self.stated)]

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return tree(self.stated)

    @property
    def exit_status(self) -> int:
        """0 found, 1 nothing fits, 3 undecided."""
        return EXIT[self.found.status]

    def with_plan(self, plan: Plan, write: Writer, report: Callable[[], ReportPage]) -> FoundAnswer:
        """The answer that a plan was found."""
        return extended(FoundAnswer, self, plan=plan, write=write, report=report)

    def print(self, shown: ShownParts, last: str = "") -> None:
        """What people asked to see of it; ``last`` is what was written."""
        if shown.verbose:
            self.candidates(False).print()
        else:
            for line in self.lines:
                print_text(line)
        if shown.all:
            self.candidates(True).print()
        for table in self.why if shown.why or shown.verbose else ():
            table.print()
        if shown.verbose and self.rows:
            print_table(f"{self.name}: plan", ("quantity", "value"), self.rows)
        for text in filter(None, (self.found.reason, last)):
            print_text(text)


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
