"""What ``run`` does with a schedule that it found, of one shape or of a plan.

It is replayed, drawn, and compared with the published schedules of the problem. The folder holds
what its finder writes, ``schedule.svg``, ``schedule.perfetto.json``, ``result.json`` and the page
``report.html``; of the replay ``replay.json`` and the page ``replay.html``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.targets import require_folder
from bubbleproof.commands.output import (
    BROKEN,
    UNDECIDED,
    counted,
    print_json,
    print_table,
    print_text,
    rule_rows,
    say,
)
from bubbleproof.commands.replaying.replay import OWN_BACKENDS, replay_given
from bubbleproof.commands.replaying.replay_files import write_files
from bubbleproof.commands.replaying.replay_options import ReplayOutput, ReplayRequest, RunOptions
from bubbleproof.commands.verdicts import section_of
from bubbleproof.facts import HOLDS, NOT_ASKED
from bubbleproof.formats import (
    ComparedFamily,
    ProblemFile,
    ScheduleFile,
    comparison_pipeline,
    write_trace,
)
from bubbleproof.formats.all_or_nothing import make_folder
from bubbleproof.formats.files import SCHEDULE_NAME, write_text
from bubbleproof.formats.inputs import require_problem_file
from bubbleproof.formats.json_text import render_json
from bubbleproof.planners.configuration_words import fullest, more
from bubbleproof.report.amounts import time
from bubbleproof.report.document import ReplayRow, replay_rows
from bubbleproof.report.extras import INSTALL, absent
from bubbleproof.report.gantt import draw
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection, write_page
from bubbleproof.report.schedule_verdict import ScheduleVerdict
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.torch_limits import MISSING
from bubbleproof.verify import Verdict, check

COLUMNS = ("schedule", "fits the memory", "makespan", "idle_ratio", "peak per rank", "proof")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunRequest:
    """What is run: a problem file, the folder, where it is replayed, and whether JSON is asked."""

    problem: str
    output: str | None
    backend: str
    verbose: bool
    json: bool

    def __post_init__(self) -> None:
        require_problem_file(self.problem, asker="run")
        require_meaning("--verbose", "--json, which has all", is_given=self.json and self.verbose)
        if self.backend not in OWN_BACKENDS:
            known = ", ".join(OWN_BACKENDS)
            raise ValueError(f"run replays on one of {known}, got {self.backend!r}")

    @property
    def folder(self) -> Path:
        """The folder of a run, to be made when there is something to write."""
        return Path(self.output or Path("runs") / Path(self.problem).stem)

    def prepare(self) -> None:
        """Refuse a folder that cannot be, and say what is left out for want of an extra."""
        require_folder(str(self.folder))  # also where it is the default's
        if libraries := absent(".svg"):
            say(f"no picture without {' and '.join(libraries)}: {INSTALL}")
        if find_spec("torch") is None:
            say(f"the schedule is not replayed: {MISSING}")

    @property
    def is_quiet(self) -> bool:
        """Whether nobody looks at how far it is."""
        return self.json or not sys.stderr.isatty()

    def tell(self, line: str) -> None:
        """Say how far it is, on a terminal."""
        if not self.is_quiet:
            say(line)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedComparison:
    """A published schedule on the user's problem: its table row, and its section if it has one."""

    row: ComparisonRow
    section: ScheduleSection | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunOutcome:
    """A schedule that was found, and how it is printed.

    ``what`` it is (plan, solved schedule), in a ``line``; ``rows`` describe it and ``compared``.
    ``verdict`` is None where a Ctrl-C came first. ``statuses`` are those of finding and judging it.
    ``write`` writes the files of its own, ``print`` prints more than the two tables.
    """

    name: str
    what: str
    line: str
    given: ScheduleFile
    verdict: Verdict | None
    compared: Sequence[PublishedComparison]
    rows: Sequence[ComparisonRow]
    statuses: tuple[int, ...]
    to_json: Callable[[], dict[str, object]]
    print: Callable[[], None]
    write: Callable[[Path], None]
    report: Callable[[], ReportPage]

    def finish(self, request: RunRequest, *, is_stopped: bool) -> int:
        """Replay, write and print it; the exit status."""
        where, replayed, status = request.folder, not_run("interrupted"), UNDECIDED
        if not (is_stopped or is_interrupted()):
            ranks = counted(self.given.problem.num_ranks, "rank")
            request.tell(f"replaying it on {request.backend} with {ranks}")
            replayed, status = replayed_by(
                self.given, request.backend, where, quiet=request.is_quiet
            )
        request.tell(f"writing the {self.what}, the picture and the page")
        make_folder(str(where / SCHEDULE_NAME))
        self.write(where)
        page = unless_interrupted(lambda: self._write(where, replayed), None)
        if request.json:
            print_json(self._json(replayed, page))
        else:
            self._print(request, replayed, page or str(where))
        statuses = (*self.statuses, status)
        return next((worst for worst in (BROKEN, UNDECIDED) if worst in statuses), 0)

    def _write(self, where: Path, replayed: tuple[ReplayRow, ...]) -> str | None:
        """Write the files beside the schedule; the path of the page, where there is one.

        Each is written whole or not at all, and after a Ctrl-C no picture is begun.
        """
        problem, schedule = self.given.problem, self.given.timed()
        write_text(where / "result.json", render_json(self.to_json()))
        write_trace(where / "schedule.perfetto.json", problem, schedule)
        if is_interrupted():
            return None
        if not absent(".svg"):
            draw(problem, schedule, where / "schedule.svg", title=self.given.name)
        report = self.report()
        first, *others = report.sections
        shown = (item.section for item in self.compared if item.section is not None)
        sections = (replace(first, replay=replayed), *others, *shown)
        page = where / "report.html"
        write_page(page, replace(report, comparison=self._comparison, sections=sections))
        return str(page)

    @property
    def _comparison(self) -> tuple[ComparisonRow, ...]:
        return (*(item.row for item in self.compared), *self.rows)

    def _json(self, replayed: tuple[ReplayRow, ...], page: str | None) -> dict[str, object]:
        return {
            "published": rows_to_json(self.compared),
            **self.to_json(),
            "verdict": None if self.verdict is None else ScheduleVerdict.of(self.verdict).to_dict(),
            "replay": [row._asdict() for row in replayed],
            "page": page,
        }

    def _print(self, request: RunRequest, replayed: tuple[ReplayRow, ...], page: str) -> None:
        if not request.verbose:
            for head, told in self._lines(replayed, request.backend, page):
                print_text(f"{head:<10}{told}")
            return
        print_comparison(self.name, self._comparison)
        self.print()
        rows = [("every rule", "undecided", "interrupted")]
        if self.verdict is not None:
            rows = rule_rows(self.verdict)
        rows += [(f"replay: {r.quantity}", r.verdict, f"measured {r.measured}") for r in replayed]
        print_table(f"verdict on the {self.what}", ("rule", "verdict", "statement"), rows)
        print_text(f"report: {page}")

    def _lines(
        self, replayed: Sequence[ReplayRow], backend: str, page: str
    ) -> Iterator[tuple[str, str]]:
        """What is said of it in a line each."""
        problem, schedule = self.given.problem, self.given.timed()
        measured = measure(problem, schedule)
        yield self.what.split()[0], self.line
        if self.compared:
            yield "against", _against(self.compared, measured.makespan)
        rules = "undecided: interrupted"
        if self.verdict is not None:
            broken = ", ".join(rule.name.lower() for rule in self.verdict.broken)
            rules = f"VIOLATED: {broken}" if broken else "every rule"
        yield "valid", f"{rules}; memory {fullest(measured.peak_memory, problem)}"
        ranks = f"{counted(problem.num_ranks, 'rank')} on {backend}"
        yield "replay", f"{ranks}: {_replay_text(replayed)}"
        yield "report", page


def _against(compared: Sequence[PublishedComparison], makespan: int) -> str:
    """How much shorter (-) or longer the schedule is than each published one."""
    told, unfit, refused = [], [], []
    for item in compared:
        row, drawn = item.row, item.section
        if drawn is None:
            refused.append(row.name)
        elif row.fits != "yes":
            unfit.append(row.name)
        else:
            other = measure(drawn.problem, drawn.schedule).makespan
            told.append(f"{row.name} {time(other, drawn.problem.unit)} ({more(makespan, other)})")
    parts = [", ".join(told)] if told else []
    parts += [f"no room for {', '.join(unfit)}"] if unfit else []
    parts += [f"no schedule of {', '.join(refused)}"] if refused else []
    return "; ".join(parts)


def _replay_text(replayed: Sequence[ReplayRow]) -> str:
    """That all is as predicted, or what is not."""
    if off := [row for row in replayed if row.verdict not in (HOLDS, NOT_ASKED)]:
        return "; ".join(f"{row.quantity} {row.verdict}: {row.measured}" for row in off)
    equal = [row.quantity.partition(" (")[0] for row in replayed if row.measured == "equal"]
    names = " and ".join(name for name in equal if " " not in name)
    held = sum(row.verdict == HOLDS for row in replayed)
    return f"{names} bit-identical; {counted(held, 'comparison')} as predicted (-v: each)"


def rows_to_json(compared: Sequence[PublishedComparison]) -> list[dict[str, object]]:
    return [item.row._asdict() for item in compared]


def compare(file: ProblemFile, item: ComparedFamily) -> PublishedComparison:
    """The published schedule on the user's work, checked without the capacity's veto on drawing."""
    chosen = family(item.family)
    try:
        pipeline = comparison_pipeline(file.pipeline, chosen, num_chunks=item.num_chunks)
        problem = pipeline.problem()
        schedule = chosen.schedule(pipeline, problem)
    except ValueError as error:
        return PublishedComparison(row=ComparisonRow.refused(item.label, str(error)), section=None)
    verdict = check(problem, schedule)
    proof = (
        "every rule holds"
        if verdict.ok
        else "violates " + " ".join(rule.name.lower() for rule in verdict.broken)
    )
    return PublishedComparison(
        row=ComparisonRow.of(item.label, problem, schedule, proof=proof),
        section=section_of(item.label, problem, schedule, verdict),
    )


def replayed_by(
    given: ScheduleFile, backend: str, where: Path, *, quiet: bool
) -> tuple[tuple[ReplayRow, ...], int]:
    """The evidence of running the schedule with a small model, and its exit status.

    Its file and its page go to the folder ``where``.
    """
    names = ("replay.json", "replay.html")
    output = ReplayOutput(output=[str(where / name) for name in names], json=quiet)
    request = ReplayRequest(schedule=[], run=RunOptions(backend=backend), output=output)
    try:
        report = unless_interrupted(lambda: replay_given(given, request), None)
    except (ValueError, RuntimeError) as error:
        status = BROKEN if isinstance(error, RuntimeError) else UNDECIDED
        return not_run(str(error)), status
    if report is None:
        return not_run("interrupted"), UNDECIDED
    unless_interrupted(lambda: write_files(request, given, report), None)
    return replay_rows(report), 0 if report.ok else BROKEN


def not_run(why: str) -> tuple[ReplayRow, ...]:
    """The one row of a replay that did not come to its end."""
    return (ReplayRow(quantity="run", predicted="", measured=why, verdict="not run"),)


def print_comparison(name: str, rows: Sequence[ComparisonRow]) -> None:
    """Schedules of one problem beside one another."""
    cells = [
        (row.name, row.fits, row.makespan, row.idle_ratio, row.peaks, row.proof) for row in rows
    ]
    print_table(f"{name}: published schedules and the found one", COLUMNS, cells)
