"""A plan beside those of the same job with changes: another cluster, another batch.

``ChangedPlan`` is one of them; ``PlannedJobs`` are those of ranges of cards, samples and tokens,
side by side in a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

from bubbleproof.costs.utilisation import utilisation
from bubbleproof.facts import Fact, FactCells, FactSource, keyed
from bubbleproof.formats.clusters.changed_cluster import COUNTS, Several, changed_file, jobs_of
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.cluster_results import (
    UNIT,
    AnyClusterPlan,
    no_room,
    tokens_per_second,
)
from bubbleproof.planners.configuration_words import (
    Parts,
    amount_of,
    deployment_parts,
    difference,
    in_words,
    more,
)
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.plan_results import took
from bubbleproof.planners.planned import PlanOptions, SearchResults
from bubbleproof.planners.planning import plan_deployments
from bubbleproof.report.amounts import time
from bubbleproof.solvers import Status

LEAST = 0.1  # of an equal share of the time, for each change
AnyFile = ClusterFile | str  # or why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPlan:
    """A change of the job, and what is planned of it then, or why nothing can be."""

    change: str
    file: AnyFile
    found: AnyClusterPlan | str

    @property
    def plan(self) -> ClusterPlan | None:
        """Where there is one."""
        return self.found if isinstance(self.found, ClusterPlan) else None

    @property
    def status(self) -> str:
        """In a word."""
        return "NOT_LEGAL" if isinstance(self.found, str) else self.found.status.name

    @property
    def counts(self) -> Mapping[str, int]:
        """The cards, samples and tokens of a sample of the job."""
        if isinstance(self.file, str):
            return {}
        job = self.file.training
        return dict(
            zip(COUNTS, (job.cluster.cards, job.samples, job.deployment.sequence), strict=True)
        )

    @property
    def mfu(self) -> float:
        """Of the plan; 0 without one."""
        if self.plan is None or isinstance(self.file, str):
            return 0.0
        return utilisation(self.file.training, self.plan.value)

    @property
    def refusal(self) -> str:
        """Why there is no plan; empty where there is one."""
        if isinstance(self.found, str) or self.plan is not None:
            return self.found if isinstance(self.found, str) else ""
        rows, nearest = self.found.rows, self.found.nearest
        if all(row.status is Outcome.NOT_LEGAL for row in rows):
            return rows[0].reason
        fits = self.found.status is Status.INFEASIBLE and nearest
        told = self.found.statement
        return f"{told}: use cards of {no_room(nearest[0])}" if fits else told

    def text(self, plan: SearchResults) -> str:
        """The iteration, the deployment and what of it is not the plan's, in a line."""
        has_cards = "cards=" in self.change and self.counts
        change = f"{self.change} ({self.counts['cards']:,} cards)" if has_cards else self.change
        if self.plan is None:
            return f"{change}: {self.refusal}"
        told = f"{change}: {time(self.plan.value, UNIT)}/iteration"
        here = _parts(self.plan)
        if not isinstance(plan, ClusterPlan):
            return f"{told} · {in_words(here)}"
        there = _parts(plan)
        which = "the same" if here == there else f"changed: {difference(here, there)}"
        return f"{told} ({more(self.plan.value, plan.value)}) · {in_words(here)} · {which}"

    @property
    def cells(self) -> tuple[str, ...]:
        """What a table of jobs has of it."""
        counts = [f"{number:,}" for number in self.counts.values()] or ["", "", self.change]
        if self.plan is None or isinstance(self.file, str):
            return (*counts, "", "", "", "", self.refusal)
        job, value = self.file.training, self.plan.value
        held = max(self.plan.plan.winner.measured.peak_memory) + self.plan.winner.numbers.beside
        return (
            *counts,
            time(value, UNIT),
            f"{tokens_per_second(self.file, value):,.0f}",
            f"{100 * self.mfu:.1f} %",
            amount_of(held, job.cluster.memory, "bytes"),
            in_words(_parts(self.plan)),
        )

    def to_json(self) -> dict[str, object]:
        """For programs."""
        plan, told = self.plan, {}
        if plan is not None and not isinstance(self.file, str):
            told = {
                "tokens_per_second": round(tokens_per_second(self.file, plan.value), 1),
                "mfu": round(self.mfu, 4),
                "lower_bound": plan.lower_bound,
                "lower_bound_of": plan.bounded,
            }
        return {
            "change": self.change,
            **(self.counts or dict.fromkeys(COUNTS)),
            "status": self.status,
            "value": None if plan is None else plan.value,
            "deployment": None if plan is None else in_words(_parts(plan)),
            **told,
            "reason": self.refusal,
        }


def _parts(found: ClusterPlan) -> Parts:
    return deployment_parts(found.winner.combination, found.plan.winner.candidate)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedJobs(SearchResults, FactSource):
    """The plans of a job over ranges, in the order of the ranges."""

    name: str
    jobs: tuple[ChangedPlan, ...]
    columns: ClassVar[FactCells] = ("job", "", "plan", "status")
    HEADER: ClassVar[tuple[str, ...]] = (
        *COUNTS,
        "iteration",
        "tokens/s",
        "MFU",
        "memory",
        "deployment",
    )

    def __repr__(self) -> str:
        planned = sum(one.plan is not None for one in self.jobs)
        return f"<PlannedJobs: {planned} of {len(self.jobs)} jobs have a plan>"

    @property
    def best(self) -> ChangedPlan | None:
        """That whose cards do most of what they can; None where none has a plan."""
        planned = [each for each in self.jobs if each.plan is not None]
        return max(planned, key=lambda one: one.mfu, default=None)

    def facts(self) -> list[Fact]:
        """Each job with its plan, and which is best."""
        best = self.best
        return [
            *keyed(name=self.name, objective="iteration", unit=UNIT),
            *keyed(jobs=[one.to_json() for one in self.jobs]),
            Fact(key="best", label="best MFU", value=None if best is None else best.change),
            *(
                Fact(label=one.change, told=" · ".join(one.cells[3:]), verdict=one.status)
                for one in self.jobs
            ),
            took(self.seconds),
        ]


def planned_jobs(
    file: ClusterFile,
    ranges: Mapping[str, Several | None],
    options: PlanOptions,
    executor: Executor | None = None,
) -> PlannedJobs:
    """The plans of all numbers of the ranges, together within the options.

    Parameters
    ----------
    ranges
        Of ``cards``, ``samples`` and ``sequence``; None: the file's.

    Raises
    ------
    ValueError
        For ranges that are none; the row of a job without a deployment says why.
    """
    began = perf_counter()
    files: list[tuple[str, AnyFile]] = []
    for change in jobs_of(ranges):
        try:
            files.append((change, changed_file(file, change, "the job with")))
        except ValueError as why:
            files.append((change, str(why)))
    plans = changed_plans(files, options, executor)
    statuses = [one.found.status for one in plans if not isinstance(one.found, str)]
    status = min(statuses, key=list(Status).index, default=Status.INFEASIBLE)
    if Status.FEASIBLE in statuses:
        status = Status.FEASIBLE
    return PlannedJobs(name=file.name, jobs=plans, status=status, seconds=perf_counter() - began)


def changed_plans(
    files: Sequence[tuple[str, AnyFile]],
    options: PlanOptions,
    executor: Executor | None = None,
) -> tuple[ChangedPlan, ...]:
    """The plan of each, together within the options; what one leaves of its time the others have.

    Parameters
    ----------
    files
        Each change with the file that has it, or why there is none.
    """
    ends, plans = perf_counter() + options.time_limit, list[ChangedPlan]()
    share = options.times(1 / max(1, len(files)))
    for number, (change, file) in enumerate(files):
        left = (ends - perf_counter()) / (len(files) - number)
        limit = max(LEAST * share.time_limit, left)
        part = replace(share, time_limit=limit, tell=None)
        found: AnyClusterPlan | str
        try:
            found = file if isinstance(file, str) else plan_deployments(file, part, executor)
        except ValueError as why:  # no deployment is that of the cards: the others stand
            found = str(why)
        plans.append(ChangedPlan(change=change, file=file, found=found))
        if options.tell is not None:
            told = plans[-1].text(SearchResults(status=Status.UNKNOWN, seconds=0.0))
            options.tell(f"{number + 1} of {len(files)}  {told}")
    return tuple(plans)


def what_if_facts(plans: Sequence[ChangedPlan], plan: SearchResults) -> list[Fact]:
    """What became of each change beside the plan, where any are asked for."""
    value, told = [one.to_json() for one in plans], "; ".join(one.text(plan) for one in plans)
    return [Fact(key="what_if", label="what if", told=told, value=value)] if plans else []
