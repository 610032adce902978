"""``bubbleproof plan FILE.toml`` where FILE starts from ``[model] [cluster] [batch]``.

Goes through all deployments (tensor, data, pipeline, micro-batch, ZeRO level, recompute scope) and,
of each, the shapes of ``[plan]``. With ``-o`` the folder then holds the winner's problem file
(``problem.toml``, of the kind that ``profile`` writes, for ``plan``, ``solve`` and ``replay``),
``plan.json``, ``schedule.json``, the page ``plan.html`` and the schedule as a PyTorch table
(``schedule.csv``). ``--certificate`` writes the proofs of all deployments, of each what bounds it
or why it has no schedule; ``verify DIR --certificate FILE`` derives the deployments anew.

``--json``: ``value`` and ``lower_bound`` are iterations, in microseconds: the pipeline's
``makespan`` and the ``step_end`` (gradients, weights, optimizer). ``winner`` has ``tensor, data,
pipeline, micro_batch, zero, scope`` beside the keys of any plan, ``candidates`` one entry for each
deployment, ``shapes`` those of the winner's pipeline. With ``--paper`` what a paper's planner would
run (of the winner's deployment, or its own) is among the candidates; its values are iterations.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bubbleproof.commands.cluster_results import (
    COLUMNS,
    cluster_plan_to_json,
    combination_rows,
    iteration_rows,
)
from bubbleproof.commands.interruption import is_interrupted, unless_interrupted
from bubbleproof.commands.output import BROKEN, print_json, print_table, print_text, say
from bubbleproof.commands.plan import (
    EXIT,
    require_targets,
    run_plan,
    seconds_of,
    write_plan_files,
)
from bubbleproof.commands.plan_paper import (
    Beside,
    joined_deployments,
    paper_rows,
    paper_to_json,
    write_paper_schedule,
)
from bubbleproof.commands.plan_report import plan_report
from bubbleproof.commands.plan_results import Timed, summary_rows, timed_candidates
from bubbleproof.commands.targets import make_folder
from bubbleproof.formats import UnusableInput, write_table
from bubbleproof.formats.bundle_json import write_deployment_bundles
from bubbleproof.formats.cluster_deployments import all_counted, deployments
from bubbleproof.formats.cluster_toml import (
    ClusterFile,
    deployed_space,
    deployed_text,
    is_cluster_file,
    read_cluster_file,
)
from bubbleproof.formats.errors import about
from bubbleproof.formats.files import write_text
from bubbleproof.formats.problem_toml import ProblemFile, problem_file_of_text
from bubbleproof.parallel import open_executor
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.cluster_planning import plan_cluster
from bubbleproof.planners.papers import require_paper
from bubbleproof.planners.planned import NOT_LEGAL
from bubbleproof.report.extras import INSTALL, absent
from bubbleproof.report.page import Report, write_page
from bubbleproof.report.plan_page import ranked_table
from bubbleproof.theory.model.schedule import Program

EXPLAINED = (
    "iteration: the pipeline's makespan and the step's end; bound: no schedule of the deployment, "
    "whatever its shape, has a shorter one."
)


def run_any_plan(
    problem: str,
    time_limit: float | None,
    work: float | None,
    threads: int,
    seed: int,
    workers: int,
    cluster: str | None,
    certificate: str | None,
    paper: str | None,
    output: str | None,
    json: bool,
) -> int:
    """Plan a problem file: of a model on a cluster, or of a pipeline."""
    if not problem.endswith(".toml") or not is_cluster_file(problem):
        return run_plan(
            problem, time_limit, work, threads, seed, workers, cluster, certificate, paper, output,
            json,
        )  # fmt: skip
    require_targets(certificate, output)
    if paper is not None:
        require_paper(paper)
    if work is not None:
        raise ValueError(
            "--work takes the problem file of a pipeline; plan this one with -o DIR, then "
            "DIR/problem.toml"
        )
    file = read_cluster_file(problem)
    limit = seconds_of(time_limit, file.time_limit)
    options = PlanOptions(time_limit=limit, threads=threads, seed=seed, tell=None if json else say)
    with about(problem):
        counts = all_counted(file)
    with open_executor(None if cluster else workers, address=cluster) as executor:
        found = plan_cluster(counts, lambda c: deployed_space(file, c), options, executor=executor)
    if found.winner is None or found.plan is None:
        _refuse_illegal(problem, found)
        _tell_nothing(file, found, json)
        return EXIT[found.status]
    found, shown = joined_deployments(paper, file, counts, found, options)
    assert found.winner is not None
    assert found.plan is not None
    deployed = problem_file_of_text(deployed_text(file, found.winner), name=file.name)
    timed = timed_candidates(found.plan, deployed)
    if output is not None:
        _write(Path(output), file, deployed, found, timed, shown)
    if certificate is not None:
        make_folder(certificate)
        every = deployments(file, counts).with_space(
            str(found.winner.combination), found.plan.space
        )
        bundles = found.bundles(every.deployed)
        write_deployment_bundles(certificate, every, bundles, name=file.name)
    if json:
        paper_too = shown and {"paper": paper_to_json(shown, found.value, found.plan.winner)}
        print_json({**cluster_plan_to_json(file, deployed, found, timed), **(paper_too or {})})
    else:
        _print(file, deployed, found, timed, shown)
    verdict = found.plan.verdict
    return BROKEN if verdict is not None and not verdict.ok else EXIT[found.status]


def _refuse_illegal(problem: str, found: ClusterPlan) -> None:
    """Raise ``ValueError`` where a number forbids every deployment."""
    if all(row.status == NOT_LEGAL for row in found.rows):
        raise ValueError(f"{problem}: no deployment divides: {found.rows[0].reason}")


def _tell_nothing(file: ClusterFile, found: ClusterPlan, json: bool) -> None:
    if json:
        print_json(cluster_plan_to_json(file, None, found, {}))
        return
    print_table(f"{file.name}: deployments", COLUMNS, combination_rows(found))
    print_table(f"{file.name}: plan", ("quantity", "value"), iteration_rows(file, found))


def _print(
    file: ClusterFile,
    deployed: ProblemFile,
    found: ClusterPlan,
    timed: Timed,
    shown: Beside | None,
) -> None:
    assert found.plan is not None
    print_table(f"{file.name}: deployments", COLUMNS, combination_rows(found))
    rows = [*iteration_rows(file, found), *_shape_rows(deployed, found, timed)]
    rows += paper_rows(shown, found.value, deployed.pipeline.unit)
    print_table(f"{file.name}: plan", ("quantity", "value"), rows)
    if found.reason:
        print_text(found.reason)


def _shape_rows(deployed: ProblemFile, found: ClusterPlan, timed: Timed) -> list[tuple[str, str]]:
    """What the joint planner says of the winner's pipeline."""
    assert found.plan is not None
    named = {"run": "pipeline's shape", "makespan": "its makespan", "time": "", "status": ""}
    rows = summary_rows(deployed, found.plan, timed)
    rows = [(named.get(name, name), value) for name, value in rows]
    seconds = ("time", f"{found.seconds:.2f} s")
    return [*(r for r in rows if r[0] and not r[0].startswith("no schedule")), seconds]


def _write(
    folder: Path,
    file: ClusterFile,
    deployed: ProblemFile,
    found: ClusterPlan,
    timed: Timed,
    shown: Beside | None,
) -> None:
    """The winner's problem, plan, schedule, page and PyTorch table."""
    assert found.plan is not None
    assert found.winner is not None
    folder.mkdir(parents=True, exist_ok=True)
    problem = folder / "problem.toml"
    write_text(problem, deployed_text(file, found.winner))
    of_cluster = file.text, str(found.winner.combination)
    write_plan_files(folder, str(problem), deployed, found.plan, of_cluster)
    winner = found.plan.winner
    assert winner is not None
    assert winner.schedule is not None
    _write_table(folder / "schedule.csv", winner.schedule.program, deployed.pipeline.num_ranks)
    if shown is not None:
        write_paper_schedule(folder, deployed, shown)
    if absent(".html"):
        say(f"no page without {' and '.join(absent('.html'))}: {INSTALL}")
    elif not is_interrupted():
        page = folder / "plan.html"
        unless_interrupted(
            lambda: write_page(page, _report(file, deployed, found, timed, shown)), None
        )
    say(f"wrote {folder}")


def _write_table(path: Path, program: Program, ranks: int) -> None:
    """What the ranks compute, as a PyTorch table, where that has words for it."""
    try:
        write_table(path, program.take(program.resource < ranks))
    except UnusableInput as why:
        say(f"no {path.name}: {why}")


def _report(
    file: ClusterFile,
    deployed: ProblemFile,
    found: ClusterPlan,
    timed: Timed,
    shown: Beside | None,
) -> Report:
    assert found.plan is not None
    report = plan_report(deployed, found.plan, timed, shown, best=found.value)
    deployments = ranked_table(COLUMNS, combination_rows(found), EXPLAINED)
    summary = (*iteration_rows(file, found), *report.summary)
    return replace(report, summary=summary, parts=(deployments, *report.parts))
