"""The folder of a plan: the plan, its schedule and, of a model on a cluster, the winner's problem.

``plan.json`` and ``schedule.json`` are what ``verify`` reads. Of a plan of deployments the winner's
problem file stands beside (``problem.toml``, for ``plan``, ``solve`` and ``replay``), and what its
ranks compute as a PyTorch table (``schedule.csv``), where that has words for it.

Each file is replaced whole, but a process that is killed between two of them leaves new ones beside
old ones. The plan holds its schedule and its problem's text, so that such a mix is seen
(``require_one_plan``), and refused by whoever is given the folder.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Protocol

from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import (
    PLAN_NAME,
    PROBLEM_NAME,
    SCHEDULE_NAME,
    FilePath,
    read_text,
    write_text,
)
from bubbleproof.formats.json_text import parse_json, read_json
from bubbleproof.formats.plans.plan_json import FORMAT, SIZE_LIMIT, PlanFile, read_plan, write_plan
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.formats.schedule_file import ScheduleFile, with_claims
from bubbleproof.formats.schedule_json import write_schedule
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

BESIDE_PLAN = ((SCHEDULE_NAME, "schedule"), (PROBLEM_NAME, "problem"))  # and where the plan has it


class PlanWinner(Protocol):
    """A plan's candidate, its pipeline with all choices fixed, and a schedule as measured."""

    @property
    def candidate(self) -> Candidate: ...
    @property
    def pipeline(self) -> Pipeline: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def measured(self) -> Measures: ...


def winner_schedule(name: str, space: PlanSpace, winner: PlanWinner) -> ScheduleFile:
    """A winner's schedule with its measured numbers as claims, for ``verify`` to confirm."""
    allowed = None
    with suppress(NotLegalError):  # what is no candidate is written too, and then refused
        allowed = shaped(space, winner.candidate).allowed
    return ScheduleFile.of(
        winner.pipeline.problem(),
        with_claims(winner.schedule, winner.measured),
        pipeline=winner.pipeline,
        name=f"{name}, {winner.candidate}",
        allowed=allowed,
    )


def planned_file(
    text: str,
    problem: ProblemFile,
    space: PlanSpace,
    winner: PlanWinner,
    *,
    cluster: ClusterFile | None = None,
    deployment: str | None = None,
) -> PlanFile:
    """What is written of a plan; ``text`` is its problem file's."""
    return PlanFile(
        name=problem.name,
        text=text,
        problem=problem,
        winner=winner.candidate,
        schedule=winner_schedule(problem.name, space, winner),
        cluster=cluster,
        deployment=deployment,
        others=space.others,
    )


def write_plan_folder(folder: Path, plan: PlanFile) -> tuple[str, ...]:
    """Write a plan into a folder that is there; what could not be written is told."""
    write_schedule(folder / SCHEDULE_NAME, plan.schedule)
    write_plan(folder / PLAN_NAME, plan)
    if plan.cluster is None:
        return ()
    write_text(folder / PROBLEM_NAME, plan.text)
    return table_beside(folder / "schedule.csv", plan.schedule)


def read_plan_at(path: FilePath) -> PlanFile:
    """The plan of a file, or of a folder, whose files have to be of one plan.

    Raises ``UnusableInput`` as ``read_plan`` and ``require_one_plan`` do.
    """
    where = Path(path)
    if not where.is_dir():
        return read_plan(where)
    require_one_plan(where)
    return read_plan(where / PLAN_NAME)


def require_one_plan(folder: Path) -> None:
    """Raise ``UnusableInput`` where a folder's schedule or problem is not its plan's.

    Of files that are missing nothing is said.
    """
    if not (folder / PLAN_NAME).is_file():
        return
    plan = read_json(folder / PLAN_NAME, FORMAT, limit=SIZE_LIMIT)
    for name, key in BESIDE_PLAN:
        path = folder / name
        if path.is_file():
            text = read_text(path, limit=SIZE_LIMIT)
            if plan.get(key) != (parse_json(text) if path.suffix == ".json" else text):
                found = f"a {name} that is not the plan's, as where writing them was cut short"
                raise UnusableInput("", "the files of one plan", found, str(folder))


def table_beside(path: Path, schedule: ScheduleFile) -> tuple[str, ...]:
    """Write what the ranks compute as a PyTorch table where it has words for all that runs.

    What is moved besides, such as an eviction, is not left out: nothing is written then.
    """
    try:
        write_table(path, schedule.program, problem=schedule.problem, communication=False)
    except UnusableInput as why:
        why.subject = path.name  # not where it lies until all is written
        return (f"no {why}",)
    return ()
