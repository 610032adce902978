"""What ``plan --paper`` asks of the wing that knows the papers' planners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

from bubbleproof.costs.combinations import AnyCount
from bubbleproof.facts import Fact
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import Plan, PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.jitter import AnyPlan
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.report.page import ScheduleSection
from bubbleproof.wings import PLANNERS, given

Search = Callable[[Sequence[KnownSchedule]], AnyPlan]


class OtherChoice(Protocol):
    """What another planner chose, as it is printed beside a plan."""

    def facts(self, found: AnyPlan, best: int | None, unit: str) -> list[Fact]:
        """What it says of itself; ``best`` is the plan's value."""

    def sections(self, found: Plan) -> list[ScheduleSection]:
        """Its part of the plan's page."""

    def write(self, folder: Path, file: ProblemFile) -> None:
        """Write its schedule, where it has one, into the plan's folder."""


class OtherPlanners(Protocol):
    """Planners by their names; each function raises ``ValueError`` for a name that is none."""

    def require_paper(self, name: str) -> None:
        """Do nothing else."""

    def beside_problem(
        self, name: str, file: ProblemFile, options: PlanOptions, search: Search
    ) -> tuple[AnyPlan, OtherChoice]:
        """The plan that ``search`` finds, begun with and joined by the planner's choice."""

    def beside_deployments(
        self,
        name: str,
        file: ClusterFile,
        counts: Sequence[AnyCount],
        found: ClusterPlan,
        options: PlanOptions,
    ) -> tuple[ClusterPlan, OtherChoice]:
        """The same of a model on a cluster, of which a plan was found."""


def paper_planners() -> OtherPlanners:
    """Those of the papers. Raises ``AbsentWingError`` where the wing is not there."""
    return cast(OtherPlanners, given(PLANNERS, "paper", "plan --paper"))
