"""What may be asked of a job beside its plan, and the answer, for ``plan``.

Ranges have a plan of each job; two configurations of one's own stand side by side; else there is
one plan, with a configuration of one's own and changes of the job beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from bubbleproof.costs.combinations import AnyCount
from bubbleproof.formats.clusters.changed_cluster import (
    Several,
    changed_file,
    jobs_of,
    with_hardware,
)
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_content import deployed_file
from bubbleproof.formats.errors import about
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.counting import COUNTED, AnyListed, counted_within, with_numbers
from bubbleproof.planners.deployment_times import deployment_times
from bubbleproof.planners.fitting_changes import changes_that_fit
from bubbleproof.planners.jitter import timed_candidates
from bubbleproof.planners.own_run import OwnRun
from bubbleproof.planners.own_savings import savings
from bubbleproof.planners.plan_facts import (
    DeploymentPlan,
    NoDeploymentPlan,
    NoPipelinePlan,
    PipelinePlan,
)
from bubbleproof.planners.planned import PlanOptions, PlanSource
from bubbleproof.planners.planning import SEARCHED, plan_counted
from bubbleproof.planners.restriction import SHARE, restriction_of
from bubbleproof.planners.side_by_side import SideBySide, own_asked, side_by_side
from bubbleproof.planners.what_ifs import PlannedJobs, changed_plans, planned_jobs

JobAnswer = (
    PipelinePlan | NoPipelinePlan | DeploymentPlan | NoDeploymentPlan | PlannedJobs | SideBySide
)
MOST_OWN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAsked:
    """Numbers in place of the file's, hardware, one's own configurations, changes and tokens.

    ``ranges`` are of ``cards``, ``samples`` and ``sequence``; None: the file's. ``hardware`` is a
    file of ``calibrate``. ``yours`` are one configuration or two, ``tokens`` those of the whole
    training. Raises ``ValueError`` for more configurations, and for no tokens.
    """

    ranges: Mapping[str, Several | None] = field(default_factory=dict)
    hardware: str | None = None
    yours: tuple[str, ...] = ()
    what_if: tuple[str, ...] = ()
    tokens: float | None = None

    def __post_init__(self) -> None:
        if len(self.yours) > MOST_OWN:
            raise ValueError(f"yours are one configuration or two, got {len(self.yours)}")
        if self.tokens is not None and not 0 < self.tokens < inf:
            raise ValueError(f"tokens must be above 0, got {self.tokens:g}; use such as 15e12")

    @property
    def names(self) -> list[str]:
        """Of all that is asked."""
        told: dict[str, object] = {
            **self.ranges,
            "hardware": self.hardware,
            "yours": self.yours or None,
        }
        told |= {"what_if": self.what_if or None, "tokens": self.tokens}
        return [name for name, value in told.items() if value is not None]

    @property
    def is_several(self) -> bool:
        """Whether what is answered is no plan: of several jobs, or of two configurations."""
        return len(jobs_of(self.ranges)) > 1 or len(self.yours) == MOST_OWN

    def settled(
        self, file: ClusterFile, options: PlanOptions, executor: Executor | None = None
    ) -> ClusterFile | PlannedJobs | SideBySide:
        """The file that is to be planned; or what is answered in a plan's place.

        Raises ``ValueError`` for hardware of another card or software, and for what is none.
        """
        if self.hardware is not None:
            file = with_hardware(file, self.hardware)
        jobs = jobs_of(self.ranges)
        if len(jobs) > 1:
            return planned_jobs(file, self.ranges, options, executor)
        file = changed_file(file, jobs[0], "plan with") if jobs else file
        return side_by_side(file, *self.yours) if len(self.yours) == MOST_OWN else file

    def answer(self, file: ClusterFile, options: PlanOptions) -> JobAnswer:
        """Of a file, within the options. Raises ``ValueError`` for what cannot be planned."""
        found = self.settled(file, options)
        if not isinstance(found, ClusterFile):
            return found
        return JobPlanning(file=found, asked=self, options=options).plan()


def _as_found(
    _counts: Sequence[AnyCount], found: ClusterPlan, _options: PlanOptions
) -> ClusterPlan:
    return found


def _accepted(_file: ClusterFile, _counts: Sequence[AnyListed], _found: NoClusterPlan) -> None:
    """Whatever forbids every deployment is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobPlanning:
    """One job, planned within the options, with what is ``asked`` beside it.

    ``is_told``: where time goes and what would make it fit is worked out too, in what is left of
    the time since it ``began``; where ``is_whole``, timing noise and the cost of the framework as
    well. ``is_proved``: all deployments are counted, however many there are. A plan is ``joined``
    by a paper's choice, and where there is none it may be ``refused``. ``path`` and ``asker`` are
    named in errors.
    """

    file: ClusterFile
    asked: JobAsked
    options: PlanOptions
    executor: Executor | None = None
    is_told: bool = False
    is_whole: bool = False
    is_proved: bool = False
    joined: Callable[[Sequence[AnyCount], ClusterPlan, PlanOptions], ClusterPlan] = _as_found
    refused: Callable[[ClusterFile, Sequence[AnyListed], NoClusterPlan], None] = _accepted
    path: str = ""
    asker: str = "plan: what_if"
    began: float = field(default_factory=lambda: time.perf_counter())

    def plan(self) -> DeploymentPlan | NoDeploymentPlan:
        """The plan, and that of each change of the cluster, all within the options."""
        changes = self.asked.what_if
        changed = [(each, changed_file(self.file, each, self.asker)) for each in changes]
        part = self.options.times(1 / (1 + len(changed)))
        found = self._plain(part)
        if not changed:
            return found
        left = self.options.after(self._waited).time_limit
        rest = replace(part.times(len(changed)), time_limit=left)
        plans = changed_plans(changed, rest, self.executor)
        return replace(found, what_if=plans, seconds=self._waited)

    def _plain(self, options: PlanOptions) -> DeploymentPlan | NoDeploymentPlan:
        yours = own_asked(self.file, next(iter(self.asked.yours), None), self._left(options))
        own = yours if isinstance(yours, OwnRun) else None
        file = self.file if own is None else own.beside(self.file)
        is_limited, counting = options.work is None and not self.is_proved, self._waited
        limit = COUNTED * options.after(counting).time_limit if is_limited else inf
        with about(self.path):
            counts = counted_within(file, limit, options.tell)
        known, numbers = None if own is None else own.begins, with_numbers(counts)
        pace = (self._waited - counting) / len(numbers)
        found = plan_counted(file, counts, options.after(self._waited), self.executor, known)
        source = PlanSource(name=file.name, text=file.text)
        told: dict[str, Any] = {"counts": numbers} if self.is_told else {}
        if isinstance(found, NoClusterPlan):
            self.refused(file, counts, found)
            if self.is_told:
                told["fits"] = changes_that_fit(file, found, options, self._rest(options))
            found = replace(found, seconds=self._waited, source=source)
            return NoDeploymentPlan.of(file, found, yours=yours, **told)
        found = self.joined(numbers, found, options)
        if self.is_told:
            told["times"] = deployment_times(file, numbers, found, self._rest(options))
        if own is not None and own.iteration > found.value:
            towards = found.winner.combination, found.plan.winner.candidate
            changes = savings(self.file, own, *towards, seconds=self._rest(options))
            own = yours = replace(own, savings=changes)
        if self.is_told:
            told["timed"] = {}
        if self.is_whole:
            left = self._left(options)
            told["restriction"] = restriction_of(file, found, own, options, left, pace)
            spread = deployed_file(file, found.winner).spread
            told["timed"] = timed_candidates(found.plan, spread, self._left(options))
        found = replace(found, seconds=self._waited, source=source)
        return DeploymentPlan.of(file, found, yours=yours, tokens=self.asked.tokens, **told)

    def _left(self, options: PlanOptions) -> float:
        """Seconds that an analysis beside the plan may take."""
        return max(0.0, min(SHARE * options.time_limit, self._rest(options)))

    def _rest(self, options: PlanOptions) -> float:
        """Seconds until what is found has to be told."""
        return SEARCHED * options.time_limit - self._waited

    @property
    def _waited(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began
