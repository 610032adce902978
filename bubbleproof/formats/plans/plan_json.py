"""A plan in one file: the problem file it was made for, the winner, and its schedule.

::

    {
      "format": "bubbleproof/plan",
      "version": 1,
      "name": "GPT-3 13B",
      "problem": "ranks = 8 ...",
      "winner": {"chunks": 5, "placement": "loop", "backward": "split", "slices": 1, ...},
      "schedule": {"format": "bubbleproof/schedule", ...},
      "others": {"tpipe": {"num_ranks": 8, ...}}
    }

``problem`` is the text of the problem file, from which a reader derives the candidates anew. The
plan of a model on a cluster has, besides, ``cluster``, the text of the file that it was made for,
``deployment``, the name of the one whose problem this is, and ``yours``, where a configuration of
the user's own was a candidate (``formats.clusters.own_configuration``). ``others``, where there are
any, are pipelines that stand beside the file's shapes (``formats.layouts.pipeline_layout``), each a
candidate with nothing open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.own_configuration import own_configuration
from bubbleproof.formats.errors import UnusableInput, about, inside, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.layouts.pipeline_layout import (
    PipelineLayout,
    pipeline_from_layout,
    pipeline_to_json,
)
from bubbleproof.formats.plans.bundle_json import CandidateLayout, candidate_of, candidate_to_json
from bubbleproof.formats.problem_toml import ProblemFile, problem_file_of_text
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.formats.schedule_json import TABLES, schedule_content, schedule_of
from bubbleproof.formats.validation import AS_WHOLE, Layout, validate, where
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace

FORMAT = "bubbleproof/plan"
VERSION = 1
SIZE_LIMIT = 256 * MEBIBYTE


class PlanFileLayout(Layout):
    """A plan file."""

    format: Literal["bubbleproof/plan"]
    version: Annotated[Literal[1], AS_WHOLE]
    name: str = ""
    problem: str
    cluster: str | None = None
    deployment: str | None = None
    yours: str | None = None
    winner: CandidateLayout
    schedule: dict[str, object]
    others: dict[str, PipelineLayout] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanFile:
    """What a plan file says; ``problem`` has a space that ``winner`` may or may not be of.

    ``text`` is that of the problem's file; ``cluster`` is the file that starts from a model, where
    the plan went through deployments. ``others`` stand beside that space's shapes.
    """

    name: str
    text: str
    problem: ProblemFile
    winner: Candidate
    schedule: ScheduleFile
    cluster: ClusterFile | None = None
    deployment: str | None = None
    others: tuple[tuple[str, Pipeline], ...] = ()

    def beside(self, space: PlanSpace) -> PlanSpace:
        """A space with the plan's other pipelines beside its shapes."""
        return replace(space, others=self.others)


def write_plan(path: FilePath, plan: PlanFile) -> None:
    """Write a plan; an existing file is replaced whole or not at all."""
    with about(path):
        of_cluster: dict[str, object] = {}
        if plan.cluster is not None:
            of_cluster = {"cluster": plan.cluster.text, "deployment": plan.deployment}
            if plan.cluster.own is not None:
                of_cluster["yours"] = str(plan.cluster.own)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "name": plan.name,
            "problem": plan.text,
            **of_cluster,
            "winner": candidate_to_json(plan.winner),
            "schedule": schedule_content(plan.schedule),
        }
        if plan.others:
            content["others"] = {each: pipeline_to_json(other) for each, other in plan.others}
        write_text(path, render_json(content, table_keys=TABLES))


def read_plan(path: FilePath) -> PlanFile:
    """Read a plan file.

    Raises ``UnusableInput`` naming the key, what was expected and what was found.
    """
    with about(path):
        layout = validate(PlanFileLayout, read_json(path, FORMAT, limit=SIZE_LIMIT))
        with inside("problem"):
            problem = problem_file_of_text(layout.problem, name=layout.name)
        if problem.plan is None:
            raise UnusableInput("problem", "a problem file with a table [plan]", "none")
        cluster = None
        if layout.cluster is not None:
            with values_at("cluster"), inside("cluster"):
                cluster = cluster_file_of_text(layout.cluster, name=layout.name)
            if layout.yours is not None:
                with values_at("yours"):
                    own = own_configuration(layout.yours, cluster.training.cluster.cards)
                    cluster = cluster.with_own(own)
        others = []
        for name, other in layout.others.items():
            with inside(where(["others", name])):
                others.append((name, pipeline_from_layout(other)))
        with inside("schedule"):
            schedule = schedule_of(layout.schedule)
        return PlanFile(
            name=layout.name,
            text=layout.problem,
            problem=problem,
            winner=candidate_of(layout.winner),
            schedule=schedule,
            cluster=cluster,
            deployment=layout.deployment,
            others=tuple(others),
        )
