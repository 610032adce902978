"""What may be asked of a job beside its plan, and the answer, for ``plan``.

Ranges have a plan of each job; two configurations of one's own stand side by side; else there is
one plan, with a configuration of one's own and changes of the job beside it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from math import inf

from bubbleproof.formats.clusters.changed_cluster import (
    Several,
    changed_file,
    jobs_of,
    with_hardware,
)
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.own_run import OwnRun
from bubbleproof.planners.own_savings import savings
from bubbleproof.planners.plan_facts import (
    DeploymentPlan,
    NoDeploymentPlan,
    NoPipelinePlan,
    PipelinePlan,
    stated_deployments,
)
from bubbleproof.planners.planned import PlanOptions, PlanSource
from bubbleproof.planners.planning import SEARCHED, plan_deployments
from bubbleproof.planners.restriction import SHARE
from bubbleproof.planners.side_by_side import SideBySide, own_asked, side_by_side
from bubbleproof.planners.what_ifs import ChangedPlan, PlannedJobs, changed_plans, planned_jobs

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
        return self._planned(found, options) if isinstance(found, ClusterFile) else found

    def _planned(
        self, file: ClusterFile, options: PlanOptions
    ) -> DeploymentPlan | NoDeploymentPlan:
        began = time.perf_counter()
        changed = [(each, changed_file(file, each, "plan: what_if")) for each in self.what_if]
        part = options.times(1 / (1 + len(changed)))
        yours = own_asked(file, next(iter(self.yours), None), SHARE * part.time_limit)
        own = yours if isinstance(yours, OwnRun) else None
        searched = file if own is None else own.beside(file)
        known = None if own is None else own.begins
        rest = part.after(time.perf_counter() - began)
        found = plan_deployments(searched, rest, known=known)
        if own is not None and isinstance(found, ClusterPlan) and own.iteration > found.value:
            towards = found.winner.combination, found.plan.winner.candidate
            seconds = SEARCHED * part.time_limit - (time.perf_counter() - began)
            yours = replace(own, savings=savings(file, own, *towards, seconds=seconds))
        found = replace(found, seconds=time.perf_counter() - began)
        source = PlanSource(name=file.name, text=file.text)
        what_if: tuple[ChangedPlan, ...] = ()
        if changed:
            left = options.after(time.perf_counter() - began).time_limit
            rest = replace(part.times(len(changed)), time_limit=left)
            what_if = changed_plans(changed, rest)
        return stated_deployments(
            searched,
            replace(found, source=source),
            yours=yours,
            what_if=what_if,
            tokens=self.tokens,
        )
