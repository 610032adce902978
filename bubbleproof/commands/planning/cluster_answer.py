"""The plan of a file that starts from ``[model] [cluster] [batch]``: deployments, and the winner.

Goes through all deployments (tensor, data, pipeline, micro-batch, ZeRO level, recompute scope) and,
of each, the shapes of ``[plan]``. The folder holds the winner's problem file (``problem.toml``, of
the kind that ``profile`` writes, for ``plan``, ``solve`` and ``replay``), ``plan.json``,
``schedule.json``, the page and the schedule as a PyTorch table (``schedule.csv``). ``--yours``
names a configuration of one's own, in words or by a file (``formats.clusters.own_files``): the
search begins with it, or the answer says why it is no candidate; twice, both stand side by side.
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

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from bubbleproof.commands.interrupts import begun
from bubbleproof.commands.output import say
from bubbleproof.commands.planning.job_answers import (
    jobs_answer,
    pair_answer,
    sheet_answer,
)
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
from bubbleproof.formats.clusters.changed_cluster import changed_file
from bubbleproof.formats.clusters.cluster_toml import (
    ClusterFile,
    read_cluster_file,
)
from bubbleproof.formats.clusters.deployed_content import deployed_file, deployed_text, deployments
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.errors import about
from bubbleproof.formats.plans.bundle_json import write_deployment_bundles
from bubbleproof.formats.plans.plan_folder import planned_file, write_plan_folder
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.asked_jobs import JobAsked
from bubbleproof.planners.assumption_sheet import assumption_sheet
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.cluster_results import (
    COLUMNS,
    PARTS_EXPLAINED,
    TIME_COLUMNS,
    UNIT,
    AnyClusterPlan,
    AnyOwn,
    cluster_facts,
    combination_rows,
    corners_of,
    days_facts,
    fit_facts,
    memory_of,
    own_facts,
    restriction_facts,
    time_rows,
    times_to_json,
    winner_facts,
)
from bubbleproof.planners.counting import (
    COUNTED,
    AnyListed,
    UncountedCombination,
    counted_within,
)
from bubbleproof.planners.deployment_times import DeploymentTimes, deployment_times
from bubbleproof.planners.fitting_changes import changes_that_fit
from bubbleproof.planners.jitter import Timed, timed_candidates
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.own_run import OwnRun
from bubbleproof.planners.own_savings import savings
from bubbleproof.planners.plan_results import took
from bubbleproof.planners.planning import SEARCHED, plan_cluster
from bubbleproof.planners.restriction import SHARE, AnyRestriction, restriction_of
from bubbleproof.planners.side_by_side import SideBySide, own_asked
from bubbleproof.planners.what_ifs import PlannedJobs, changed_plans, what_if_fact
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
class _Told:
    """A plan of deployments, its winner's problem and schedules, and what is told beside."""

    file: ClusterFile
    deployed: ProblemFile
    found: ClusterPlan
    timed: Timed
    shown: OtherChoice | None
    times: tuple[DeploymentTimes, ...]
    yours: AnyOwn
    restriction: AnyRestriction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterQuestion:
    """A model on a cluster, and what is ``asked`` beside the plan, or in its place; and a paper,
    whose choice is shown too.

    ``is_whole``: timing noise and the cost of the framework are looked at too, in what is left of
    the time since the command ``began``. ``is_proved``: all deployments are counted, however many
    there are, since the proofs are of all. ``is_sheet``: what the times rest on is told, and
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
            return pair_answer(found)
        if self.is_sheet:
            return sheet_answer(assumption_sheet(found))
        return replace(self, file=found)._planned(options, executor)

    def _planned(self, options: PlanOptions, executor: Executor | None) -> PlanAnswer:
        changed = [(change, changed_file(self.file, change)) for change in self.asked.what_if]
        part = options.times(1 / (1 + len(changed)))
        answer = self._plain_answer(part, executor)
        if not changed:
            return answer
        left = options.after(self._waited).time_limit
        rest = replace(part.times(len(changed)), time_limit=left)
        plans = changed_plans(changed, rest, executor)
        stated = [took(self._waited) if f.key == "seconds" else f for f in answer.stated]
        lines = [f"what if  {one.text(answer.found)}" for one in plans]
        lines = [*answer.lines[:-1], *lines, answer.lines[-1]]
        return replace(answer, lines=lines, stated=[*stated, what_if_fact(plans, answer.found)])

    def _plain_answer(self, options: PlanOptions, executor: Executor | None) -> PlanAnswer:
        yours = own_asked(self.file, next(iter(self.asked.yours), None), self._left(options))
        own = yours if isinstance(yours, OwnRun) else None
        file = self.file if own is None else own.beside(self.file)
        with about(self.path):
            is_limited, counting = options.work is None and not self.is_proved, self._waited
            rest = options.after(counting).time_limit
            counts = counted_within(file, COUNTED * rest if is_limited else inf, options.tell)
        pace = (self._waited - counting) / len(_with_numbers(counts))
        found = plan_cluster(
            counts,
            lambda c: deployed_space(file, c),
            replace(options.after(self._waited), orders=file.orders),
            executor=executor,
            is_lazy=file.is_open,
            known=None if own is None else own.begins,
            bounded=file.bounded,
        )
        if isinstance(found, NoClusterPlan):
            _refuse_illegal(self.path, file, counts, found)
            fits = changes_that_fit(file, found, options, self._rest(options))
            found = replace(found, seconds=self._waited)
            lines = cluster_lines(file, found, yours=yours, fits=fits)
            beside = [*own_facts(file, yours, found), *fit_facts(fits)]
            stated = [*cluster_facts(file, found), *beside]
            return _answer(file, found, lines, stated)
        found, shown = self._joined(counts, found, options)
        deployed = deployed_file(file, found.winner)
        times = deployment_times(file, counts, found, self._rest(options))
        if own is not None and own.iteration > found.value:
            towards = found.winner.combination, found.plan.winner.candidate
            changes = savings(self.file, own, *towards, seconds=self._rest(options))
            own = yours = replace(own, savings=changes)
        timed: Timed = {}
        restriction: AnyRestriction = None
        if self.is_whole:
            restriction = restriction_of(file, found, own, options, self._left(options), pace)
            timed = timed_candidates(found.plan, deployed.spread, self._left(options))
        told = _Told(
            file=file,
            deployed=deployed,
            found=replace(found, seconds=self._waited),
            timed=timed,
            shown=shown,
            times=times,
            yours=yours,
            restriction=restriction,
        )
        return _found_answer(told, counts, self.asked.tokens)

    def _left(self, options: PlanOptions) -> float:
        """Seconds that an analysis beside the plan may take."""
        return max(0.0, min(SHARE * options.time_limit, self._rest(options)))

    def _rest(self, options: PlanOptions) -> float:
        """Seconds until what is found has to be told."""
        return SEARCHED * options.time_limit - self._waited

    @property
    def _waited(self) -> float:
        """Seconds since the command began."""
        return time.perf_counter() - self.began

    def _joined(
        self, counts: Sequence[AnyListed], found: ClusterPlan, options: PlanOptions
    ) -> tuple[ClusterPlan, OtherChoice | None]:
        """With a paper's choice among what was found."""
        if self.paper is None:
            return found, None
        beside = paper_planners().beside_deployments
        return beside(self.paper, self.file, _with_numbers(counts), found, options)


def _with_numbers(counts: Sequence[AnyListed]) -> list[AnyCount]:
    return [one for one in counts if not isinstance(one, UncountedCombination)]


def _answer(
    file: ClusterFile,
    found: AnyClusterPlan,
    lines: Sequence[str],
    stated: Sequence[Fact],
    why: Sequence[PlanTable] = (),
) -> PlanAnswer:
    def candidates(is_all: bool) -> PlanTable:
        rows = combination_rows(file, found, *([None] if is_all else []))
        return PlanTable(title=f"{file.name}: deployments", columns=COLUMNS, rows=rows)

    return PlanAnswer(
        name=file.name, found=found, lines=lines, stated=stated, candidates=candidates, why=why
    )


def _found_answer(
    of: _Told, counts: Sequence[AnyListed], tokens: float | None = None
) -> PlanAnswer:
    beside = [] if of.shown is None else of.shown.facts(of.found.plan, of.found.value, UNIT)
    stated = [
        *cluster_facts(of.file, of.found),
        *winner_facts(of.deployed, of.found, of.timed),
        Fact(key="times", value=times_to_json(of.times)),
        *restriction_facts(of.restriction, of.found.value),
        *own_facts(of.file, of.yours, of.found),
        *days_facts(of.file, of.found, tokens),
        *beside,
    ]
    lines = cluster_lines(of.file, of.found, of.times, of.yours, beside, tokens=tokens)
    answer = _answer(of.file, of.found, lines, stated, why_tables(of))
    answer = replace(answer, proofs=(partial(_write_proofs, of=of, counts=counts),))
    report = partial(_report, of, answer.rows)
    return answer.with_plan(of.found.plan, partial(_write, of=of), report)


def why_tables(of: _Told) -> list[PlanTable]:
    """What would change the answer: where time goes, and what a restriction costs."""
    tables = []
    if of.times:
        title, rows = f"{of.file.name}: where the time goes", time_rows(of.times)
        tables = [PlanTable(title=title, columns=TIME_COLUMNS, rows=rows, note=PARTS_EXPLAINED)]
    if costs := rows_of(restriction_facts(of.restriction, of.found.value)):
        rows = [(label, told) for label, _, told, _ in costs]
        title = f"{of.file.name}: cost of this restriction"
        tables.append(PlanTable(title=title, columns=("quantity", "value"), rows=rows))
    return tables


def _write_proofs(path: Path, of: _Told, counts: Sequence[AnyListed]) -> None:
    """The proofs of every deployment."""
    every = deployments(of.file, _with_numbers(counts))
    every = every.with_space(str(of.found.winner.combination), of.found.plan.space)
    bundles = of.found.bundles(every.deployed)
    write_deployment_bundles(path, every, bundles, name=of.file.name)


def _write(folder: Path, of: _Told) -> None:
    """The winner's problem, plan, schedule and PyTorch table, and a paper's schedule."""
    own = of.found.plan
    plan = planned_file(
        deployed_text(of.file, of.found.winner),
        of.deployed,
        own.space,
        own.winner,
        cluster=of.file,
        deployment=str(of.found.winner.combination),
    )
    for lost in write_plan_folder(folder, plan):
        say(f"not written: {lost}")
    if of.shown is not None:
        of.shown.write(folder, of.deployed)


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


def _report(of: _Told, rows: Sequence[tuple[str, str]]) -> ReportPage:
    report = plan_report(of.deployed, of.found.plan, of.timed, of.shown, rows)
    table = ranked_table(
        COLUMNS, combination_rows(of.file, of.found), EXPLAINED, title="Deployments"
    )
    picture = deployment_corners(
        corners_of(of.found), unit=UNIT, capacity=of.file.training.cluster.memory
    )
    said = deployment_text(of.found), iteration_text(of.file, of.found)
    headline = " · ".join([*said, f"memory {memory_of(of.file, of.found)}"])
    parts = (table, picture, _time_section(of), *report.parts)
    _, *summary = report.summary  # the title says which problem
    return replace(report, headline=headline, summary=tuple(summary), parts=parts)


def _time_section(of: _Told) -> str:
    """The table of where the time goes, for the page."""
    if not of.times:
        return ""
    shown = table_of(TIME_COLUMNS, time_rows(of.times))
    told = paragraph(PARTS_EXPLAINED.replace("\n", " "), css="soft")
    return section("Where the time goes", shown, told)
