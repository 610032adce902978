"""``bubbleproof plan FILE.toml``: the best pipeline over shapes and choices, with proof.

Prints the candidates, the best first, each with why it lost, and how long the schedules take where
durations spread. With ``-o`` the folder then holds ``plan.json`` (the problem file, the winner and
its schedule), ``schedule.json`` and the page ``plan.html``; ``--certificate`` writes the proofs of
all candidates, which ``verify plan.json --certificate FILE`` reads. With ``--paper`` what a paper's
planner would run is among the candidates (``plan_paper``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bubbleproof.commands.heartbeat import heartbeat
from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.shared_options import PlanRequest, seconds_of
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    print_json,
    print_table,
    print_text,
    say,
)
from bubbleproof.commands.planning.paper_results import (
    PipelinesBeside,
    joint_to_json,
    paper_rows,
    paper_to_json,
    write_paper_schedule,
)
from bubbleproof.commands.planning.plan_report import plan_report
from bubbleproof.commands.planning.plan_results import (
    COLUMNS,
    AnyPlan,
    Timed,
    candidate_rows,
    plan_to_json,
    summary_rows,
    timed_candidates,
    value_of,
)
from bubbleproof.formats import UnusableInput
from bubbleproof.formats.plans.bundle_json import write_bundle
from bubbleproof.formats.plans.plan_folder import planned_file, write_plan_folder
from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.parallel import open_executor
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.outcome import Outcome
from bubbleproof.report.page import ReportPage, write_page
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.nearest_shape import nearest_change

if TYPE_CHECKING:
    from bubbleproof.papers.planning.paper_choice import PaperChoice

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: HOLDS,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}


def run_plan(problem: str, request: PlanRequest) -> int:
    """Plan one problem file, print the result, and write what is asked for."""
    if not problem.endswith(".toml"):
        raise ValueError(f"plan takes a problem file (.toml), got {problem!r}")
    require_targets(request)
    file = read_problem(problem)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", problem)
    chosen, known = _chosen(request.paper, file)
    options = options_of(request, file.time_limit)
    with workers_of(request) as executor, heartbeat(options) as telling:
        found = planned(file, telling, executor, known)
    _refuse_illegal(problem, found)
    found, shown = _joined(found, chosen, options)
    timed = timed_candidates(found, file, options.time_limit)
    output = request.output if isinstance(found, Plan) else None
    certificate = None if found.status is Status.INFEASIBLE else request.certificate
    with written_together(output, certificate) as (folder, proofs):
        if isinstance(found, Plan) and output is not None:
            _write(folder, problem, file, found, timed, shown)
        if certificate is not None:
            write_bundle(proofs, found.space, found.bundle, name=file.name)
    if output is not None:
        say(f"wrote {output}")
    if request.json:
        paper_too = {} if shown is None else {"paper": paper_to_json(shown, joint_to_json(found))}
        print_json({**plan_to_json(file, found, timed), **paper_too})
    else:
        print_plan(file, found, timed, shown)
    return exit_status(found)


def _chosen(
    paper: str | None, file: ProblemFile
) -> tuple[PaperChoice | None, tuple[KnownSchedule, ...]]:
    """What a paper's planner says, and what the search begins with; nothing without ``--paper``."""
    if paper is None:
        return None, ()
    from bubbleproof.commands.planning.plan_paper import chosen_by, known_to

    chosen = chosen_by(paper, file)
    return chosen, known_to(chosen)


def _joined(
    found: AnyPlan, chosen: PaperChoice | None, options: PlanOptions
) -> tuple[AnyPlan, PipelinesBeside | None]:
    if chosen is None:
        return found, None
    from bubbleproof.commands.planning.plan_paper import joined

    return joined(found, chosen, options)


def require_targets(request: PlanRequest) -> None:
    """Raise ``ValueError`` where the proofs are to be another kind of file."""
    certificate = request.certificate
    if certificate is not None and not certificate.endswith(".json"):
        raise ValueError(f"the certificate's file must end in .json, got {certificate!r}")


def options_of(request: PlanRequest, in_file: int | None) -> PlanOptions:
    """How to plan, as the command line or the file says."""
    return PlanOptions(
        time_limit=seconds_of(request.time_limit, in_file, request.work),
        work=request.work,
        threads=request.threads,
        seed=request.seed,
        tell=None if request.json else say,
    )


def workers_of(request: PlanRequest) -> AbstractContextManager[Executor | None]:
    """Who looks at candidates."""
    address = request.elsewhere.address
    return open_executor(request.workers if address is None else None, address=address)


def _refuse_illegal(problem: str, found: AnyPlan) -> None:
    """Raise ``ValueError`` where a number forbids every candidate."""
    if all(one.status is Outcome.NOT_LEGAL for one in found.judged):
        nearest = nearest_change(found.space)
        repair = "" if nearest is None else f"; use {nearest}"
        raise ValueError(f"{problem}: no candidate divides: {found.judged[0].reason}{repair}")


def planned(
    file: ProblemFile,
    options: PlanOptions,
    executor: Executor | None = None,
    known: Sequence[KnownSchedule] = (),
) -> AnyPlan:
    """The plan of a problem file. Raises ``ValueError`` for one whose objective is no makespan."""
    if file.plan is None or file.objective != "makespan":
        raise ValueError(f"a plan is made for the makespan, {file.name} asks for {file.objective}")
    return plan(file.plan, options, executor=executor, known=known)


def exit_status(found: AnyPlan) -> int:
    """0 found and verified, 1 nothing fits, 3 undecided."""
    if isinstance(found, Plan) and not found.verdict.ok:
        return BROKEN
    return EXIT[found.status]


def print_plan(
    file: ProblemFile, found: AnyPlan, timed: Timed, shown: PipelinesBeside | None = None
) -> None:
    """The tables for people."""
    print_table(f"{file.name}: candidates", COLUMNS, candidate_rows(file, found, timed))
    beside = paper_rows(shown, value_of(found), file.pipeline.unit)
    rows = [*summary_rows(file, found, timed), *beside]
    print_table(f"{file.name}: plan", ("quantity", "value"), rows)
    if found.reason:
        print_text(found.reason)


def write_plan_files(folder: Path, problem: str, file: ProblemFile, found: Plan) -> None:
    """The plan and its schedule, for ``verify``."""
    text = Path(problem).read_text(encoding="utf-8")
    write_plan_folder(folder, planned_file(text, file, found.space, found.winner))


def _write(
    folder: Path,
    problem: str,
    file: ProblemFile,
    found: Plan,
    timed: Timed,
    shown: PipelinesBeside | None,
) -> None:
    write_plan_files(folder, problem, file, found)
    if shown is not None:
        write_paper_schedule(folder, file, shown)
    write_plan_page(folder, lambda: plan_report(file, found, timed, shown))


def write_plan_page(folder: Path, report: Callable[[], ReportPage]) -> None:
    """The page, unless a Ctrl-C came first."""
    if not is_interrupted():
        unless_interrupted(lambda: write_page(folder / "plan.html", report()), None)
