"""``bubbleproof run PROBLEM.toml``: the whole way once.

Solve, verify, draw and replay a problem, beside the published schedules that its file names, and
print one table of verdicts. The folder then holds ``schedule.json``, ``schedule.svg``,
``schedule.perfetto.json``, ``result.json`` and the page ``report.html``; of the replay
``replay.json`` and the page ``replay.html``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from bubbleproof.commands.evidence import evidence
from bubbleproof.commands.inputs import Given, Posed, read_posed
from bubbleproof.commands.options import SearchOptions
from bubbleproof.commands.output import (
    BROKEN,
    UNDECIDED,
    console,
    print_json,
    print_table,
    rule_rows,
    say,
    status_of,
    verdict_to_json,
)
from bubbleproof.commands.replay import OWN_BACKENDS, replay_given
from bubbleproof.commands.replay_files import write_files
from bubbleproof.commands.replay_request import ReplayRequest
from bubbleproof.commands.results import proof_text, result_to_json
from bubbleproof.commands.solve import (
    EXIT,
    options_for,
    schedule_file,
    solve_posed,
)
from bubbleproof.commands.verify import verify_given
from bubbleproof.formats import (
    Comparison,
    ProblemFile,
    comparison_pipeline,
    write_schedule,
    write_trace,
)
from bubbleproof.formats.files import write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.reference_exec.models.spec import ModelSpec
from bubbleproof.report.document import ReplayRow
from bubbleproof.report.gantt import draw
from bubbleproof.report.page import (
    ComparisonRow,
    Report,
    ScheduleSection,
    VerdictRow,
    write_page,
)
from bubbleproof.report.units import Scale
from bubbleproof.solvers import Result
from bubbleproof.theory.families import family
from bubbleproof.verify import Semantics, Verdict, check

COLUMNS = ("schedule", "fits the memory", "makespan", "idle_ratio", "peak per rank", "proof")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Compared:
    """A published schedule on the user's problem: its table row, and its section if it has one."""

    row: ComparisonRow
    section: ScheduleSection | None


def run_problem(
    path: str, *, folder: str | None, backend: str, time_limit: float | None, as_json: bool = False
) -> int:
    """Do everything with one problem file and print the table of verdicts (or one JSON object)."""
    if not path.endswith(".toml"):
        raise ValueError(f"run takes a problem file (.toml), got {path!r}")
    if backend not in OWN_BACKENDS:
        raise ValueError(f"run replays on one of {', '.join(OWN_BACKENDS)}, got {backend!r}")
    posed = read_posed(path)
    assert posed.file is not None
    where = Path(folder or Path("runs") / Path(path).stem)
    where.mkdir(parents=True, exist_ok=True)
    if not as_json:
        say(f"{posed.name}: {posed.problem.num_tasks} tasks on {posed.problem.num_ranks} ranks")
    compared = [_compare(posed.file, item) for item in posed.file.compare]
    posed, result = solve_posed(
        posed, options_for(posed, SearchOptions(time_limit=time_limit), quiet=as_json)
    )
    if result.schedule is None:
        if as_json:
            print_json({"published": _rows_to_json(compared), **result_to_json(posed, result)})
        else:
            _print_comparison(posed, compared, None)
            console().print(f"{result.status.value}. {result.reason}", markup=False)
        return EXIT[result.status]
    return _finish(posed, result, compared, where, backend, as_json)


def _finish(
    posed: Posed,
    result: Result,
    compared: list[_Compared],
    where: Path,
    backend: str,
    as_json: bool,
) -> int:
    assert result.schedule is not None
    file = schedule_file(posed, result)
    assert file.schedule is not None
    given = Given(
        name=f"{posed.name}, solved",
        problem=posed.problem,
        program=file.program,
        schedule=file.schedule,
        pipeline=posed.pipeline,
        has_communication=False,
    )
    tell = _silent if as_json else say
    tell("verifying the solved schedule under every communication semantics")
    verdict = verify_given(given, tuple(Semantics))
    tell(f"replaying it on {backend} with {posed.problem.num_ranks} ranks")
    replayed, replay_status = _replay(given, backend, where, quiet=as_json)
    solved = ComparisonRow.of(
        "solved", posed.problem, file.schedule, proof=proof_text(posed, result)
    )
    section = ScheduleSection(
        name=f"solved ({result.origin})",
        problem=posed.problem,
        schedule=file.schedule,
        verdicts=_verdict_rows(verdict),
        violations=tuple(map(str, verdict.violations)),
        replay=replayed,
    )
    tell("writing the schedule, the picture and the page")
    write_schedule(where / "schedule.json", file)
    write_trace(where / "schedule.perfetto.json", posed.problem, file.schedule)
    write_text(where / "result.json", render_json(result_to_json(posed, result)))
    draw(posed.problem, file.schedule, where / "schedule.svg", title=given.name)
    page = Report(
        title=posed.name,
        summary=_summary(posed, result),
        comparison=(solved, *(item.row for item in compared)),
        sections=(section, *(item.section for item in compared if item.section is not None)),
        versions=_versions(),
    )
    write_page(where / "report.html", page)
    status = _worst(status_of(verdict), replay_status, EXIT[result.status])
    if as_json:
        print_json(
            {
                "published": _rows_to_json(compared),
                **result_to_json(posed, result),
                "verdict": verdict_to_json(verdict),
                "replay": [asdict(row) for row in replayed],
                "page": str(where / "report.html"),
            }
        )
        return status
    _print_comparison(posed, compared, solved)
    rows = [(rule, state, text) for rule, state, text in rule_rows(verdict)]
    rows += [(f"replay: {r.quantity}", r.verdict, f"measured {r.measured}") for r in replayed]
    print_table("verdict on the solved schedule", ("rule", "verdict", "statement"), rows)
    console().print(f"The page: {where / 'report.html'}", markup=False, soft_wrap=True)
    return status


def _silent(line: str) -> None:
    """Progress for a program: none."""


def _rows_to_json(compared: list[_Compared]) -> list[dict[str, object]]:
    return [asdict(item.row) for item in compared]


def _worst(*statuses: int) -> int:
    return next((s for s in (BROKEN, UNDECIDED) if s in statuses), 0)


def _compare(file: ProblemFile, item: Comparison) -> _Compared:
    """The published schedule on the user's work, checked without the capacity's veto on drawing."""
    chosen = family(item.family)
    try:
        pipeline = comparison_pipeline(file.pipeline, chosen, num_chunks=item.num_chunks)
        problem = pipeline.problem()
        schedule = chosen.schedule(pipeline, problem)
    except ValueError as error:
        return _Compared(row=ComparisonRow.refused(item.label, str(error)), section=None)
    verdict = check(problem, schedule)
    proof = "every rule holds" if verdict.ok else "violates " + " ".join(
        rule.name.lower() for rule in verdict.broken
    )  # fmt: skip
    return _Compared(
        row=ComparisonRow.of(item.label, problem, schedule, proof=proof),
        section=ScheduleSection(
            name=item.label,
            problem=problem,
            schedule=schedule,
            verdicts=_verdict_rows(verdict),
            violations=tuple(map(str, verdict.violations)),
        ),
    )


def _verdict_rows(verdict: Verdict) -> tuple[VerdictRow, ...]:
    return tuple(
        VerdictRow(rule=rule, verdict=state.split(" ")[0], detail=detail)
        for rule, state, detail in rule_rows(verdict)
    )


def _replay(
    given: Given, backend: str, where: Path, *, quiet: bool
) -> tuple[tuple[ReplayRow, ...], int]:
    """The evidence of running the schedule with a small model, and its exit status.

    Its file and its page go to the folder ``where``.
    """
    spec = ModelSpec()
    try:
        request = ReplayRequest(words=(), spec=spec, backend=backend, as_json=quiet)
        report = replay_given(given, request)
    except (ValueError, RuntimeError) as error:
        status = BROKEN if isinstance(error, RuntimeError) else UNDECIDED
        row = ReplayRow(quantity="run", predicted="", measured=str(error), verdict="not run")
        return (row,), status
    targets = [str(where / name) for name in ("replay.json", "replay.html")]
    write_files(targets, given, report, spec, evidence(report), quiet=quiet)
    rows = tuple(
        ReplayRow(quantity=quantity, predicted=predicted, measured=measured, verdict=verdict)
        for quantity, predicted, measured, verdict in evidence(report)
    )
    return rows, 0 if report.ok else BROKEN


def _summary(posed: Posed, result: Result) -> tuple[tuple[str, str], ...]:
    pipeline, problem = posed.pipeline, posed.problem
    assert pipeline is not None
    assert posed.file is not None
    caps = [store.capacity for store in problem.stores if store.capacity is not None]
    scale = Scale.of(problem.memory_unit, max(caps, default=0))
    memory = scale.amount(min(caps)) + " at least on each rank" if caps else "unlimited"
    return (
        ("problem", posed.file.description or posed.name),
        ("ranks", str(pipeline.num_ranks)),
        ("microbatches", str(pipeline.num_microbatches)),
        ("stages", str(pipeline.num_stages)),
        ("tasks", str(problem.num_tasks)),
        ("memory", memory),
        ("status", result.status.value),
        ("proof", proof_text(posed, result)),
        ("solve time", f"{result.seconds:.2f} s"),
        *(("chosen", line) for line in (posed.choices.chosen if posed.choices else ())),
    )


def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in ("bubbleproof", "numpy", "ortools"))


def _print_comparison(
    posed: Posed, compared: list[_Compared], solved: ComparisonRow | None
) -> None:
    rows = [item.row for item in compared] + ([solved] if solved is not None else [])
    cells = [
        (row.name, row.fits, row.makespan, row.idle_ratio, row.peaks, row.proof) for row in rows
    ]
    print_table(f"{posed.name}: published schedules and the solved one", COLUMNS, cells)
