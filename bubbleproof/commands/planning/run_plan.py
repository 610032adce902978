"""``bubbleproof run PROBLEM.toml`` of a file with a table ``[plan]``: plan, verify, draw, replay.

The table of schedules ends with what the file's own shape gives, and then the plan. The folder
holds, beside what a run of one shape writes, ``plan.json`` and ``certificate.json``, the proofs of
all candidates.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.shared_options import seconds_of
from bubbleproof.commands.options.targets import make_folder
from bubbleproof.commands.output import (
    BROKEN,
    UNDECIDED,
    counted,
    print_json,
    print_table,
    print_text,
    rule_rows,
    say,
    verdict_to_json,
)
from bubbleproof.commands.planning.plan import (
    exit_status,
    planned,
    print_plan,
    write_plan_files,
)
from bubbleproof.commands.planning.plan_report import own_shape, plan_report
from bubbleproof.commands.planning.plan_results import (
    Timed,
    plan_to_json,
    timed_candidates,
)
from bubbleproof.commands.run import (
    PublishedComparison,
    compare,
    not_run,
    prepared_folder,
    print_comparison,
    replayed_by,
    require_run,
    rows_to_json,
    run_shape,
)
from bubbleproof.formats import read_problem, write_trace
from bubbleproof.formats.files import write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.formats.plans.bundle_json import write_bundle
from bubbleproof.formats.plans.plan_folder import winner_schedule
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import Plan, PlanOptions, SolvedCandidate
from bubbleproof.planners.outcome import Outcome
from bubbleproof.report.extras import absent
from bubbleproof.report.gantt import draw
from bubbleproof.report.page import ComparisonRow, write_page
from bubbleproof.report.table_rows import ReplayRow


def run_problem(
    problem: str, output: str | None, backend: str, time_limit: float | None, json: bool
) -> int:
    """Do everything with one problem file and print the table of verdicts (or one JSON object)."""
    require_run(problem, backend)
    file = read_problem(problem)
    if file.plan is None:
        return run_shape(problem, output, backend, time_limit, json)
    where = prepared_folder(problem, output)
    tell = (lambda _: None) if json else say
    tell(f"{file.name}: {counted(len(file.plan.candidates()), 'candidate')}")
    compared = [compare(file, item) for item in file.compare]
    options = PlanOptions(
        time_limit=seconds_of(time_limit, file.time_limit),
        tell=None if json else say,
    )
    found = planned(file, options)
    timed = timed_candidates(found, file, options.time_limit)
    if not isinstance(found, Plan):
        if json:
            told = {"published": rows_to_json(compared), **plan_to_json(file, found, timed)}
            print_json(told)
        else:
            print_comparison(file.name, [item.row for item in compared])
            print_plan(file, found, timed)
        return exit_status(found)
    given = winner_schedule(file.name, found.space, found.winner)
    given = replace(given, name=f"{file.name}, planned")
    replayed, replay_status = not_run("interrupted"), UNDECIDED
    if not (options.stop.is_set() or is_interrupted()):
        tell(f"replaying it on {backend} with {counted(file.pipeline.num_ranks, 'rank')}")
        replayed, replay_status = replayed_by(given, backend, where, quiet=json)
    tell("writing the plan, its proofs, the picture and the page")
    make_folder(str(where / "plan.json"))
    rows = [*(item.row for item in compared), *_rows(file, found)]
    write_plan_files(where, problem, file, found)
    write_bundle(where / "certificate.json", found.space, found.bundle, name=file.name)
    page = unless_interrupted(lambda: _write(where, file, found, timed, compared, replayed), None)
    if json:
        _print_json(file, found, timed, compared, replayed, page)
    else:
        print_comparison(file.name, rows)
        print_plan(file, found, timed)
        checks = rule_rows(found.verdict)
        checks += [(f"replay: {r.quantity}", r.verdict, f"measured {r.measured}") for r in replayed]
        print_table("verdict on the plan", ("rule", "verdict", "statement"), checks)
        print_text(f"The folder: {where}" if page is None else f"The page: {page}")
    statuses = (exit_status(found), replay_status)
    return next((worst for worst in (BROKEN, UNDECIDED) if worst in statuses), 0)


def _rows(file: ProblemFile, found: Plan) -> list[ComparisonRow]:
    """What the file's own shape gives, and the plan."""
    rows = []
    today = own_shape(file, found)
    if today is not None and today is not found.winner:
        proof = f"no schedule of this shape is below {today.bound}"
        if today.status is Outcome.OPTIMAL:
            proof = f"optimal for this shape: {proof}"
        rows.append(_row("this shape", today, proof))
    proof = f"{found.statement}: no schedule is below {found.lower_bound}"
    return [*rows, _row("the plan", found.winner, proof)]


def _row(name: str, one: SolvedCandidate, proof: str) -> ComparisonRow:
    label = f"{name} ({one.candidate})"
    return ComparisonRow.of(label, one.pipeline.problem(), one.schedule, proof=proof)


def _write(
    where: Path,
    file: ProblemFile,
    found: Plan,
    timed: Timed,
    compared: list[PublishedComparison],
    replayed: tuple[ReplayRow, ...],
) -> str | None:
    """Write the files beside the plan; the path of the page, where there is one."""
    given = winner_schedule(file.name, found.space, found.winner)
    problem, schedule = given.problem, given.timed()
    write_text(where / "result.json", render_json(plan_to_json(file, found, timed)))
    write_trace(where / "schedule.perfetto.json", problem, schedule)
    if is_interrupted():
        return None
    if not absent(".svg"):
        draw(problem, schedule, where / "schedule.svg", title=given.name)
    report = plan_report(file, found, timed)
    shown = tuple(item.section for item in compared if item.section is not None)
    first, *others = report.sections
    page = where / "report.html"
    write_page(
        page,
        replace(
            report,
            comparison=(*(item.row for item in compared), *_rows(file, found)),
            sections=(replace(first, replay=replayed), *others, *shown),
        ),
    )
    return str(page)


def _print_json(
    file: ProblemFile,
    found: Plan,
    timed: Timed,
    compared: list[PublishedComparison],
    replayed: tuple[ReplayRow, ...],
    page: str | None,
) -> None:
    print_json(
        {
            "published": rows_to_json(compared),
            **plan_to_json(file, found, timed),
            "verdict": verdict_to_json(found.verdict),
            "replay": [row._asdict() for row in replayed],
            "page": page,
        }
    )
