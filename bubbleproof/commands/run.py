"""``bubbleproof run PROBLEM.toml``: the whole way once, for a file without a plan.

Solve, verify, draw and replay a problem, beside the published schedules that its file names, and
print one table of verdicts. The folder then holds ``schedule.json``, ``schedule.svg``,
``schedule.perfetto.json``, ``result.json`` and the page ``report.html``; of the replay
``replay.json`` and the page ``replay.html``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from bubbleproof.commands.inputs import ProblemInput, read_problem_input
from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.shared_options import SearchOptions
from bubbleproof.commands.options.targets import make_folder, require_folder
from bubbleproof.commands.output import (
    BROKEN,
    UNDECIDED,
    counted,
    print_json,
    print_table,
    print_text,
    rule_rows,
    say,
    status_of,
    verdict_to_json,
)
from bubbleproof.commands.replaying.evidence import evidence
from bubbleproof.commands.replaying.replay import OWN_BACKENDS, replay_given
from bubbleproof.commands.replaying.replay_files import write_files
from bubbleproof.commands.replaying.replay_options import ReplayOutput, ReplayRequest, RunOptions
from bubbleproof.commands.replaying.torch_limits import MISSING
from bubbleproof.commands.results import proof_text, result_to_json, statement
from bubbleproof.commands.solve import (
    EXIT,
    options_for,
    schedule_file,
    solve_input,
)
from bubbleproof.commands.verify import section_of
from bubbleproof.formats import (
    ComparedFamily,
    ProblemFile,
    ScheduleFile,
    comparison_pipeline,
    write_schedule,
    write_trace,
)
from bubbleproof.formats.files import write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.report.amounts import Scale
from bubbleproof.report.extras import INSTALL, absent
from bubbleproof.report.gantt import draw
from bubbleproof.report.headline import headline
from bubbleproof.report.page import (
    ComparisonRow,
    ReportPage,
    ScheduleSection,
    write_page,
)
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.solvers import Result
from bubbleproof.theory.families import family
from bubbleproof.verify import Verdict, check
from bubbleproof.verify.every_rule import check_every_rule

PACKAGES = ("bubbleproof", "numpy", "ortools")
COLUMNS = ("schedule", "fits the memory", "makespan", "idle_ratio", "peak per rank", "proof")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedComparison:
    """A published schedule on the user's problem: its table row, and its section if it has one."""

    row: ComparisonRow
    section: ScheduleSection | None


def require_run(problem: str, backend: str) -> None:
    """Raise ``ValueError`` for what is no problem file, and for a backend that is none."""
    if not problem.endswith(".toml"):
        raise ValueError(f"run takes a problem file (.toml), got {problem!r}")
    if backend not in OWN_BACKENDS:
        raise ValueError(f"run replays on one of {', '.join(OWN_BACKENDS)}, got {backend!r}")


def prepared_folder(problem: str, output: str | None) -> Path:
    """The folder of a run, to be made when there is something to write.

    What will be left out of it for want of an extra is told.
    """
    where = Path(output or Path("runs") / Path(problem).stem)
    require_folder(str(where))  # also where it is the default's
    say_what_is_absent()
    return where


def run_shape(
    problem: str, output: str | None, backend: str, time_limit: float | None, json: bool
) -> int:
    """Do everything with the shape of a problem file; print its verdicts (or one JSON object)."""
    source = read_problem_input(problem)
    assert source.file is not None
    where = prepared_folder(problem, output)
    if not json:
        tasks, ranks = source.problem.num_tasks, source.problem.num_ranks
        say(f"{source.name}: {counted(tasks, 'task')} on {counted(ranks, 'rank')}")
    compared = [compare(source.file, item) for item in source.file.compare]
    options = options_for(source, SearchOptions(time_limit=time_limit), quiet=json)
    source, result = solve_input(source, options)
    if result.schedule is None:
        if json:
            print_json({"published": rows_to_json(compared), **result_to_json(source, result)})
        else:
            print_comparison(source.name, [item.row for item in compared])
            print_text(f"{statement(source, result)}. {result.reason}")
        return EXIT[result.status]
    is_stopped = options.stop.is_set()
    return _finish(source, result, compared, where, None if is_stopped else backend, json)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Finished:
    """A problem solved, its schedule verified and replayed, beside the published ones.

    ``verdict`` is None where a Ctrl-C came first.
    """

    source: ProblemInput
    result: Result
    file: ScheduleFile
    compared: list[PublishedComparison]
    verdict: Verdict | None
    replayed: tuple[ReplayRow, ...]

    @property
    def row(self) -> ComparisonRow:
        """The solved schedule in the comparison."""
        proof = proof_text(self.source, self.result)
        return ComparisonRow.of("solved", self.file.problem, self.file.timed(), proof=proof)

    @property
    def report(self) -> ReportPage:
        """The page."""
        name = f"solved ({self.result.origin})"
        problem, schedule = self.file.problem, self.file.timed()
        solved = section_of(name, problem, schedule, self.verdict, replay=self.replayed)
        published = (item.section for item in self.compared if item.section is not None)
        return ReportPage(
            title=self.source.name,
            headline=headline(problem, schedule, pipeline=self.file.pipeline),
            summary=_summary(self.source, self.result),
            comparison=(self.row, *(item.row for item in self.compared)),
            sections=(solved, *published),
            versions=tuple((name, version(name)) for name in PACKAGES),
        )

    def to_json(self, page: str | None) -> dict[str, object]:
        """All of it for programs."""
        return {
            "published": rows_to_json(self.compared),
            **result_to_json(self.source, self.result),
            "verdict": None if self.verdict is None else verdict_to_json(self.verdict),
            "replay": [row._asdict() for row in self.replayed],
            "page": page,
        }

    def print(self, page: str | None, where: Path) -> None:
        """All of it for people."""
        print_comparison(self.source.name, [*(item.row for item in self.compared), self.row])
        rows = [("every rule", "undecided", "interrupted")]
        if self.verdict is not None:
            rows = rule_rows(self.verdict)
        rows += [
            (f"replay: {r.quantity}", r.verdict, f"measured {r.measured}") for r in self.replayed
        ]
        print_table("verdict on the solved schedule", ("rule", "verdict", "statement"), rows)
        print_text(f"The folder: {where}" if page is None else f"The page: {page}")


def _finish(
    source: ProblemInput,
    result: Result,
    compared: list[PublishedComparison],
    where: Path,
    backend: str | None,
    json: bool,
) -> int:
    """Verify, replay, write and print what was solved; None for no replay."""
    tell = (lambda _: None) if json else say
    file = schedule_file(source, result)
    given = replace(file, name=f"{source.name}, solved")
    tell("verifying the solved schedule under every communication semantics")
    verdict = unless_interrupted(lambda: check_every_rule(given.to_judge), None)
    if backend is None or is_interrupted():
        replayed, replay_status = not_run("interrupted"), UNDECIDED
    else:
        tell(f"replaying it on {backend} with {counted(source.problem.num_ranks, 'rank')}")
        replayed, replay_status = replayed_by(given, backend, where, quiet=json)
    finished = _Finished(
        source=source,
        result=result,
        file=given,
        compared=compared,
        verdict=verdict,
        replayed=replayed,
    )
    tell("writing the schedule, the picture and the page")
    make_folder(str(where / "schedule.json"))
    write_schedule(where / "schedule.json", file)
    page = unless_interrupted(lambda: _write(finished, where), None)
    if json:
        print_json(finished.to_json(page))
    else:
        finished.print(page, where)
    verified = UNDECIDED if verdict is None else status_of(verdict)
    statuses = (verified, replay_status, EXIT[result.status])
    return next((worst for worst in (BROKEN, UNDECIDED) if worst in statuses), 0)


def _write(finished: _Finished, where: Path) -> str | None:
    """Write the files beside the schedule; the path of the page, where there is one.

    Each is written whole or not at all, and after a Ctrl-C no picture is begun.
    """
    problem, schedule = finished.file.problem, finished.file.timed()
    content = result_to_json(finished.source, finished.result)
    write_text(where / "result.json", render_json(content))
    write_trace(where / "schedule.perfetto.json", problem, schedule)
    if is_interrupted():
        return None
    if not absent(".svg"):
        draw(problem, schedule, where / "schedule.svg", title=finished.file.name)
    page = where / "report.html"
    write_page(page, finished.report)
    return str(page)


def say_what_is_absent() -> None:
    """What is left out for want of an extra, told before the work begins."""
    if libraries := absent(".svg"):
        say(f"no picture without {' and '.join(libraries)}: {INSTALL}")
    if find_spec("torch") is None:
        say(f"the schedule is not replayed: {MISSING}")


def rows_to_json(compared: list[PublishedComparison]) -> list[dict[str, object]]:
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
    unless_interrupted(lambda: write_files(request, given, report, evidence(report)), None)
    return tuple(evidence(report)), 0 if report.ok else BROKEN


def not_run(why: str) -> tuple[ReplayRow, ...]:
    """The one row of a replay that did not come to its end."""
    return (ReplayRow(quantity="run", predicted="", measured=why, verdict="not run"),)


def _summary(source: ProblemInput, result: Result) -> tuple[tuple[str, str], ...]:
    pipeline, problem = source.pipeline, source.problem
    assert pipeline is not None
    assert source.file is not None
    caps = [store.capacity for store in problem.stores if store.capacity is not None]
    scale = Scale.of(problem.memory_unit, max(caps, default=0))
    memory = scale.amount(min(caps)) + " at least on each rank" if caps else "unlimited"
    return (
        ("problem", source.file.description or source.name),
        ("ranks", str(pipeline.num_ranks)),
        ("microbatches", str(pipeline.num_microbatches)),
        ("stages", str(pipeline.num_stages)),
        ("tasks", str(problem.num_tasks)),
        ("memory", memory),
        ("status", statement(source, result)),
        ("proof", proof_text(source, result)),
        ("solve time", f"{result.seconds:.2f} s"),
        *(("chosen", line) for line in (source.choices.chosen if source.choices else ())),
    )


def print_comparison(name: str, rows: Sequence[ComparisonRow]) -> None:
    """Schedules of one problem beside one another."""
    cells = [
        (row.name, row.fits, row.makespan, row.idle_ratio, row.peaks, row.proof) for row in rows
    ]
    print_table(f"{name}: published schedules and the found one", COLUMNS, cells)
