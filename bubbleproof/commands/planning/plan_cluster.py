"""``bubbleproof plan FILE.toml`` where FILE starts from ``[model] [cluster] [batch]``.

Goes through all deployments (tensor, data, pipeline, micro-batch, ZeRO level, recompute scope) and,
of each, the shapes of ``[plan]``. With ``-o`` the folder then holds the winner's problem file
(``problem.toml``, of the kind that ``profile`` writes, for ``plan``, ``solve`` and ``replay``),
``plan.json``, ``schedule.json``, the page ``plan.html`` and the schedule as a PyTorch table
(``schedule.csv``). ``--yours "tensor=4 pipeline=4 chunks=5"`` estimates a configuration of one's
own beside it. ``--certificate`` writes the proofs of all deployments, of each what bounds it or why
it has no schedule; ``verify DIR --certificate FILE`` derives the deployments anew.

``--json``: ``value`` and ``lower_bound`` are iterations, in microseconds: the pipeline's
``makespan`` and the ``step_end`` (gradients, weights, optimizer). ``winner`` has ``tensor, data,
pipeline, micro_batch, zero, scope`` beside the keys of any plan, ``candidates`` one entry for each
deployment, ``shapes`` those of the winner's pipeline, ``times`` where the microseconds of the plan
and of the next five go, ``yours`` the configuration of one's own. With ``--paper`` what a paper's
planner would run (of the winner's deployment, or its own) is among the candidates; its values are
iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bubbleproof.commands.heartbeat import heartbeat
from bubbleproof.commands.options.shared_options import PlanRequest
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import BROKEN, print_json, print_table, print_text, say
from bubbleproof.commands.planning.cluster_results import (
    COLUMNS,
    UNIT,
    cluster_plan_to_json,
    combination_rows,
    corners_of,
    iteration_rows,
    no_plan_to_json,
    utilisation,
)
from bubbleproof.commands.planning.own_run import OwnRun, own_run
from bubbleproof.commands.planning.paper_results import (
    PipelinesBeside,
    paper_rows,
    paper_to_json,
    run_to_json,
    write_paper_schedule,
)
from bubbleproof.commands.planning.plan import (
    EXIT,
    options_of,
    require_targets,
    run_plan,
    workers_of,
    write_plan_page,
)
from bubbleproof.commands.planning.plan_report import deployed_report
from bubbleproof.commands.planning.plan_results import Timed, deployed_rows, timed_candidates
from bubbleproof.commands.planning.restriction import (
    SHARE,
    Restriction,
    restriction_of,
)
from bubbleproof.commands.planning.time_table import (
    PARTS_EXPLAINED,
    TIME_COLUMNS,
    DeploymentTimes,
    deployment_times,
    own_rows,
    own_to_json,
    time_rows,
    times_to_json,
)
from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats.clusters.cluster_deployments import all_counted
from bubbleproof.formats.clusters.cluster_toml import (
    ClusterFile,
    is_cluster_file,
    read_cluster_file,
)
from bubbleproof.formats.clusters.deployed_problem import deployed_file, deployed_text
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.clusters.numbered_deployments import deployments
from bubbleproof.formats.errors import about
from bubbleproof.formats.plans.bundle_json import write_deployment_bundles
from bubbleproof.formats.plans.plan_folder import planned_file, write_plan_folder
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import Plan, PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.report.deployment_corners import deployment_corners
from bubbleproof.report.html import paragraph, section
from bubbleproof.report.html import table as table_of
from bubbleproof.report.page import ReportPage
from bubbleproof.report.plan_page import ranked_table
from bubbleproof.theory.pipelines.shapes.nearest_shape import nearest_change

LETTERS = (
    "t, d, p: tensor, data and pipeline parallel cards; b: samples of a microbatch; c: cards that "
    "share\na sequence; e: cards over which experts are spread; zero: level of ZeRO;\n"
    "none, attention or full: what of a layer is recomputed"
)
EXPLAINED = (
    "iteration: the pipeline's makespan and the step's end; bound: no schedule of the deployment, "
    "whatever its shape, has a shorter one; MFU: the model's FLOPs, the attention's square whole "
    "and nothing recomputed counted, of what the cards' dense rate would do; "
    f"{LETTERS.replace(chr(10), ' ')}."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """A plan of deployments, its winner's problem and schedules, and a paper's choice beside."""

    file: ClusterFile
    deployed: ProblemFile
    found: ClusterPlan
    plan: Plan
    winner: CombinationCosts
    timed: Timed
    shown: PipelinesBeside | None
    times: tuple[DeploymentTimes, ...]
    yours: OwnRun | None = None
    restriction: Restriction | None = None


def run_any_plan(problem: str, request: PlanRequest) -> int:
    """Plan a problem file: of a model on a cluster, or of a pipeline."""
    if not problem.endswith(".toml") or not is_cluster_file(problem):
        if request.yours is not None:
            raise ValueError(
                f"--yours is a deployment of a model on a cluster, and {problem} tells neither; "
                "use a file that starts from [model] [cluster] [batch]"
            )
        return run_plan(problem, request)
    require_targets(request)
    if request.paper is not None:
        from bubbleproof.papers.planning.planner_list import require_paper

        require_paper(request.paper)
    file = read_cluster_file(problem)
    options, began = options_of(request, file.time_limit), perf_counter()
    yours = None if request.yours is None else own_run(file, request.yours.split())
    with about(problem):
        counts = all_counted(file)
    options = options.after(perf_counter() - began)
    with workers_of(request) as executor, heartbeat(options) as telling:
        found = plan_cluster(
            counts,
            lambda c: deployed_space(file, c),
            asked_of(file, telling),
            executor=executor,
            is_lazy=file.opened is not None,
        )
    if isinstance(found, NoClusterPlan):
        _refuse_illegal(problem, file, counts, found)
        _tell_nothing(file, found, request.json)
        return EXIT[found.status]
    answer = _answer(file, counts, found, request.paper, options)
    left = max(0.0, min(SHARE * options.time_limit, options.time_limit - (perf_counter() - began)))
    restriction = restriction_of(file, answer.found, options, left)
    answer = replace(answer, restriction=restriction, yours=yours)
    with written_together(request.output, request.certificate) as (folder, proofs):
        if request.output is not None:
            _write(folder, answer)
        if request.certificate is not None:
            _write_proofs(proofs, counts, answer)
    if request.output is not None:
        say(f"wrote {request.output}")
    if request.json:
        print_json(_to_json(answer))
    else:
        _print(answer)
    return EXIT[answer.found.status] if answer.plan.verdict.ok else BROKEN


def asked_of(file: ClusterFile, options: PlanOptions) -> PlanOptions:
    """The options, with the orders that the file's framework runs."""
    return options if file.opened is None else replace(options, orders=file.opened.runs.orders)


def _answer(
    file: ClusterFile,
    counts: Sequence[CombinationCosts],
    found: ClusterPlan,
    paper: str | None,
    options: PlanOptions,
) -> _Answer:
    """What was found, with a paper's choice among it, and sampled durations."""
    shown = None
    if paper is not None:
        from bubbleproof.commands.planning.plan_paper import joined_deployments

        found, shown = joined_deployments(paper, file, counts, found, options)
    deployed = deployed_file(file, found.winner)
    return _Answer(
        file=file,
        deployed=deployed,
        found=found,
        plan=found.plan,
        winner=found.winner,
        timed=timed_candidates(found.plan, deployed, options.time_limit),
        shown=shown,
        times=deployment_times(file, counts, found),
    )


def _write_proofs(path: Path, counts: Sequence[CombinationCosts], of: _Answer) -> None:
    every = deployments(of.file, counts)
    every = every.with_space(str(of.winner.combination), of.plan.space)
    bundles = of.found.bundles(every.deployed)
    write_deployment_bundles(path, every, bundles, name=of.file.name)


def _to_json(of: _Answer) -> dict[str, object]:
    found = cluster_plan_to_json(of.file, of.deployed, of.found, of.timed)
    found["times"] = times_to_json(of.times)
    if of.yours is not None:
        found["yours"] = own_to_json(of.yours, of.found, utilisation(of.file, of.yours.iteration))
    if of.restriction is not None:
        found["framework"] = of.restriction.to_json()
    if of.shown is None:
        return found
    return {**found, "paper": paper_to_json(of.shown, run_to_json(of.found.value, of.plan.winner))}


def _refuse_illegal(
    problem: str, file: ClusterFile, counts: Sequence[CombinationCosts], found: NoClusterPlan
) -> None:
    """Raise ``ValueError`` where a number forbids every deployment, with the nearest that works."""
    if any(row.status not in (Outcome.NOT_LEGAL, Outcome.TOO_LARGE) for row in found.rows):
        return
    if large := [row for row in found.rows if row.status is Outcome.TOO_LARGE]:
        raise ValueError(
            f"{problem}: no deployment can be planned, of {len(large)} because they are larger "
            f"than a plan takes: {large[0].combination}: {large[0].reason}; use fewer samples"
        )
    is_counted = [one.numbers is not None for one in counts]
    first, repair = is_counted.index(True) if any(is_counted) else 0, None
    with suppress(ValueError):  # what no problem can tell, as the reason says
        repair = nearest_change(deployed_space(file, counts[first])) if any(is_counted) else None
    told = found.rows[first].reason + ("" if repair is None else f"; use {repair}")
    raise ValueError(f"{problem}: no deployment can be planned: {told}")


def _tell_nothing(file: ClusterFile, found: NoClusterPlan, json: bool) -> None:
    if json:
        print_json(no_plan_to_json(file, found))
        return
    _print_deployments(file, found)
    print_table(f"{file.name}: plan", ("quantity", "value"), iteration_rows(file, found))


def _print_deployments(file: ClusterFile, found: ClusterPlan | NoClusterPlan) -> None:
    print_table(f"{file.name}: deployments", COLUMNS, combination_rows(file, found))
    print_text(LETTERS)


def _print(of: _Answer) -> None:
    _print_deployments(of.file, of.found)
    if of.times:
        print_table(f"{of.file.name}: where the time goes", TIME_COLUMNS, time_rows(of.times))
        print_text(PARTS_EXPLAINED)
    rows = [*iteration_rows(of.file, of.found), *_shape_rows(of)]
    rows += paper_rows(of.shown, of.found.value, of.deployed.pipeline.unit)
    rows += [] if of.restriction is None else of.restriction.rows(of.found.value)
    rows += _own_rows(of)
    print_table(f"{of.file.name}: plan", ("quantity", "value"), rows)
    if of.found.reason:
        print_text(of.found.reason)


def _own_rows(of: _Answer) -> list[tuple[str, str]]:
    if of.yours is None:
        return []
    return own_rows(of.yours, of.found, utilisation(of.file, of.yours.iteration))


def _shape_rows(of: _Answer) -> list[tuple[str, str]]:
    """What the joint planner says of the winner's pipeline."""
    rows = deployed_rows(of.deployed, of.plan, of.timed)
    return [*rows, ("time", f"{of.found.seconds:.2f} s")]


def _write(folder: Path, of: _Answer) -> None:
    """The winner's problem, plan, schedule, page and PyTorch table."""
    text = deployed_text(of.file, of.winner)
    plan = planned_file(
        text,
        of.deployed,
        of.plan.space,
        of.plan.winner,
        cluster=of.file,
        deployment=str(of.winner.combination),
    )
    for lost in write_plan_folder(folder, plan):
        say(lost)
    if of.shown is not None:
        write_paper_schedule(folder, of.deployed, of.shown)
    write_plan_page(folder, lambda: _report(of))


def _report(of: _Answer) -> ReportPage:
    report = deployed_report(of.deployed, of.plan, of.timed, of.shown, of.found.value)
    table = ranked_table(
        COLUMNS, combination_rows(of.file, of.found), EXPLAINED, title="Deployments"
    )
    picture = deployment_corners(
        corners_of(of.found), unit=UNIT, capacity=of.file.training.cluster.memory
    )
    summary = (*iteration_rows(of.file, of.found), *report.summary, *_own_rows(of))
    parts = (table, picture, _time_section(of), *report.parts)
    return replace(report, summary=summary, parts=parts)


def _time_section(of: _Answer) -> str:
    """The table of where the time goes, for the page."""
    if not of.times:
        return ""
    shown = table_of(TIME_COLUMNS, time_rows(of.times))
    told = paragraph(PARTS_EXPLAINED.replace("\n", " "), css="soft")
    return section("Where the time goes", shown, told)
