"""The plan of a file that starts from ``[model] [cluster] [batch]``: deployments, and the winner.

Goes through all deployments (tensor, data, pipeline, micro-batch, ZeRO level, recompute scope) and,
of each, the shapes of ``[plan]``. The folder holds the winner's problem file (``problem.toml``, of
the kind that ``profile`` writes, for ``plan``, ``solve`` and ``replay``), ``plan.json``,
``schedule.json``, the page and the schedule as a PyTorch table (``schedule.csv``). ``--yours``
names a configuration of one's own, in words or by a file (``formats.clusters.own_files``): the
search begins with it, or the answer says why it is no candidate; named twice, both are compared.
Ranges of cards, samples and tokens have a plan of each job, in a table. The proofs are of
all deployments, of each what bounds it or why it has no schedule; ``verify DIR --certificate FILE``
derives the deployments anew.

In JSON ``value`` and ``lower_bound`` are iterations, in microseconds: the pipeline's ``makespan``
and the ``step_end`` (gradients, weights, optimizer). ``winner`` has ``tensor, data, pipeline,
micro_batch, zero, scope`` beside the keys of any plan, ``candidates`` one entry for each
deployment, ``shapes`` those of the winner's pipeline, ``times`` where the microseconds of the plan
and of the next five go, ``yours`` the configuration of one's own. With ``--paper`` what a paper's
planner would run (of the winner's deployment, or its own) is among the candidates; its values are
iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from bubbleproof.commands.interrupts import begun
from bubbleproof.commands.output import say
from bubbleproof.commands.planning.job_answers import jobs_answer, lines_answer
from bubbleproof.commands.planning.other_plans import OtherChoice, paper_planners
from bubbleproof.commands.planning.plan_answer import PlanAnswer, PlanTable
from bubbleproof.commands.planning.plan_lines import (
    cluster_lines,
    deployment_text,
    iteration_text,
)
from bubbleproof.commands.planning.plan_report import plan_report
from bubbleproof.costs.combinations import AnyCount, legal
from bubbleproof.facts import Fact
from bubbleproof.facts import rows as rows_of
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, read_cluster_file
from bubbleproof.formats.clusters.deployed_content import deployed_text, deployments
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.plans.bundle_json import write_deployment_bundles
from bubbleproof.formats.plans.plan_folder import planned_file, write_plan_folder
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.asked_jobs import JobAsked, JobPlanning
from bubbleproof.planners.assumption_sheet import assumption_sheet
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.cluster_results import (
    COLUMNS,
    PARTS_EXPLAINED,
    TIME_COLUMNS,
    UNIT,
    combination_rows,
    corners_of,
    memory_of,
    restriction_facts,
    time_rows,
)
from bubbleproof.planners.counting import AnyListed
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.plan_facts import DeploymentPlan, NoDeploymentPlan
from bubbleproof.planners.side_by_side import SideBySide
from bubbleproof.planners.what_ifs import PlannedJobs
from bubbleproof.report.html import paragraph, section
from bubbleproof.report.html import table as table_of
from bubbleproof.report.page import ReportPage
from bubbleproof.report.plan_page import deployment_corners, ranked_table
from bubbleproof.theory.pipelines.shapes.nearest_shape import nearest_change

EXPLAINED = (
    "iteration: the pipeline's makespan and the step's end; bound: no order of the deployment's "
    "pipelines that were open, layers cut as the answer says, has a shorter one; MFU: the model's "
    "FLOPs, the attention's square whole and nothing recomputed counted, of what the cards' dense "
    "rate would do. TP, PP, DP, CP, EP: tensor, pipeline, data, context and expert parallelism."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterQuestion:
    """A model on a cluster, and what is ``asked`` beside the plan, or in its place; and a paper,
    whose choice is shown too.

    ``is_whole``: timing noise and the cost of the framework are looked at too, in what is left of
    the time since the command ``began``. ``is_proved``: all deployments are counted, however many
    there are, since the proofs are of all. ``is_sheet``: what the times rest on is printed, and
    nothing is searched.
    """

    path: str
    file: ClusterFile
    asked: JobAsked = field(default_factory=JobAsked)
    paper: str | None = None
    is_whole: bool = True
    is_proved: bool = True
    is_sheet: bool = False
    began: float = field(default_factory=begun)

    @classmethod
    def of(cls, path: str, paper: str | None = None, **asked: Any) -> ClusterQuestion:
        """Raises ``ValueError`` for an unknown paper."""
        if paper is not None:
            paper_planners().require_paper(paper)
        return cls(path=path, file=read_cluster_file(path), paper=paper, **asked)

    @property
    def time_limit(self) -> int | None:
        """Seconds that the file gives."""
        return self.file.time_limit

    @property
    def memory(self) -> int | None:
        """The bytes that an engine may take, of the file."""
        return self.file.memory

    def answer(self, options: PlanOptions, executor: Executor | None = None) -> PlanAnswer:
        """Plan it, and it with each change of the cluster, all within the options.

        Raises ``ValueError`` where a number forbids every deployment.
        """
        found = self.asked.settled(self.file, options, executor)
        if isinstance(found, PlannedJobs):
            return jobs_answer(found)
        if isinstance(found, SideBySide):
            return lines_answer(found)
        if self.is_sheet:
            return lines_answer(assumption_sheet(found))
        shown: list[OtherChoice] = []
        job = JobPlanning(
            file=found,
            asked=self.asked,
            options=options,
            executor=executor,
            is_told=True,
            is_whole=self.is_whole,
            is_proved=self.is_proved,
            joined=partial(self._joined, found, shown),
            refused=partial(_refuse_illegal, self.path),
            path=self.path,
            asker="--what-if",
            began=self.began,
        )
        return _answer(job.plan(), shown)

    def _joined(
        self,
        file: ClusterFile,
        shown: list[OtherChoice],
        counts: Sequence[AnyCount],
        found: ClusterPlan,
        options: PlanOptions,
    ) -> ClusterPlan:
        """With a paper's choice among what was found, which is then ``shown``."""
        if self.paper is None:
            return found
        beside = paper_planners().beside_deployments
        found, choice = beside(self.paper, file, counts, found, options)
        shown.append(choice)
        return found


def _answer(
    found: DeploymentPlan | NoDeploymentPlan, shown: Sequence[OtherChoice] = ()
) -> PlanAnswer:
    name = found.file.name

    def candidates(is_all: bool) -> PlanTable:
        rows = combination_rows(found.file, found, *([None] if is_all else []))
        return PlanTable(title=f"{name}: deployments", columns=COLUMNS, rows=rows)

    def answer(
        stated: Sequence[Fact], beside: Sequence[Fact] = (), why: Sequence[PlanTable] = ()
    ) -> PlanAnswer:
        lines = cluster_lines(found, beside)
        return PlanAnswer(
            name=name, found=found, lines=lines, stated=stated, candidates=candidates, why=why
        )

    if isinstance(found, NoDeploymentPlan):
        return answer(found.facts())
    beside = [fact for one in shown for fact in one.facts(found.plan, found.value, UNIT)]
    told = answer(found.stated(beside), beside, why_tables(found))
    told = replace(told, proofs=(partial(_write_proofs, of=found),))
    report = partial(_report, found, shown, told.rows)
    return told.with_plan(found.plan, partial(_write, of=found, shown=shown), report)


def why_tables(of: DeploymentPlan) -> list[PlanTable]:
    """What would change the answer: where time goes, and what a restriction costs."""
    tables = []
    if of.times:
        title, rows = f"{of.file.name}: where the time goes", time_rows(of.times)
        tables = [PlanTable(title=title, columns=TIME_COLUMNS, rows=rows, note=PARTS_EXPLAINED)]
    if costs := rows_of(restriction_facts(of.restriction, of.value)):
        rows = [(label, told) for label, _, told, _ in costs]
        title = f"{of.file.name}: cost of this restriction"
        tables.append(PlanTable(title=title, columns=("quantity", "value"), rows=rows))
    return tables


def _write_proofs(path: Path, of: DeploymentPlan) -> None:
    """The proofs of every deployment."""
    every = deployments(of.file, of.counts)
    every = every.with_space(str(of.winner.combination), of.plan.space)
    write_deployment_bundles(path, every, of.bundles(every.deployed), name=of.file.name)


def _write(folder: Path, of: DeploymentPlan, shown: Sequence[OtherChoice]) -> None:
    """The winner's problem, plan, schedule and PyTorch table, and a paper's schedule."""
    deployed = of.deployed
    plan = planned_file(
        deployed_text(of.file, of.winner),
        deployed,
        of.plan.space,
        of.plan.winner,
        cluster=of.file,
        deployment=str(of.winner.combination),
    )
    for lost in write_plan_folder(folder, plan):
        say(f"not written: {lost}")
    for one in shown:
        one.write(folder, deployed)


def _refuse_illegal(
    problem: str, file: ClusterFile, counts: Sequence[AnyListed], found: NoClusterPlan
) -> None:
    """Raise ``ValueError`` where a number forbids every deployment, with the nearest that works."""
    if any(row.status not in (Outcome.NOT_LEGAL, Outcome.TOO_LARGE) for row in found.rows):
        return
    if large := [row for row in found.rows if row.status is Outcome.TOO_LARGE]:
        raise ValueError(
            f"{problem}: no deployment can be planned, of {len(large)} because they are larger "
            f"than a plan takes: {large[0].combination}: {large[0].reason}; use fewer samples"
        )
    told_of, repair = [*legal(counts)[:1]], None
    with suppress(ValueError):  # what no problem can tell, as the reason says
        repair = nearest_change(deployed_space(file, told_of[0])) if told_of else None
    first = counts.index(told_of[0]) if told_of else 0
    told = found.rows[first].reason + ("" if repair is None else f"; use {repair}")
    raise ValueError(f"{problem}: no deployment can be planned: {told}")


def _report(
    of: DeploymentPlan, shown: Sequence[OtherChoice], rows: Sequence[tuple[str, str]]
) -> ReportPage:
    choice = next(iter(shown), None)
    report = plan_report(of.deployed, of.plan, of.timed or {}, choice, rows)
    table = ranked_table(COLUMNS, combination_rows(of.file, of), EXPLAINED, title="Deployments")
    capacity = of.file.training.cluster.memory
    picture = deployment_corners(corners_of(of), unit=UNIT, capacity=capacity)
    said = deployment_text(of), iteration_text(of.file, of)
    headline = " · ".join([*said, f"memory {memory_of(of.file, of)}"])
    parts = (table, picture, _time_section(of), *report.parts)
    _, *summary = report.summary  # the title says which problem
    return replace(report, headline=headline, summary=tuple(summary), parts=parts)


def _time_section(of: DeploymentPlan) -> str:
    """The table of where the time goes, for the page."""
    if not of.times:
        return ""
    shown = table_of(TIME_COLUMNS, time_rows(of.times))
    told = paragraph(PARTS_EXPLAINED.replace("\n", " "), css="soft")
    return section("Where the time goes", shown, told)
