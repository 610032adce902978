"""What the functions at the door take, by name; imported for annotations alone.

Whatever people hold a problem or a schedule in serves (``door_given``), and each form is named here
for editors and type checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bubbleproof.arguments import FilePath
from bubbleproof.arguments import Progress as Progress
from bubbleproof.door_judge import FoundPlan
from bubbleproof.formats import ProblemFile, ScheduleFile
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.pytorch_csv import TableFile
from bubbleproof.planners.cluster_planned import NoClusterPlan
from bubbleproof.planners.planned import NoPlanFound
from bubbleproof.planners.side_by_side import SideBySide
from bubbleproof.planners.what_ifs import PlannedJobs
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own_model import OwnModel
from bubbleproof.solvers.repair_search import Repair
from bubbleproof.solvers.result import Result
from bubbleproof.theory.families import FamilyMember
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.bundle import CandidateBound


class TorchSchedule(Protocol):
    """A schedule object of ``torch.distributed.pipelining``, by what each class of it has."""

    _n_microbatches: int


class TextOfAction(Protocol):
    """Any object whose ``str`` is an action's text, such as torch's ``_Action``."""

    def __str__(self) -> str: ...


ActionLike = Action | str | TextOfAction | None
RankOrders = Sequence[Sequence[ActionLike]] | Mapping[int, Sequence[ActionLike]]
GivenProblem = Pipeline | Problem | ProblemFile | ScheduleFile | FamilyMember | PlanFile | FilePath
GivenOrder = ScheduleFile | FamilyMember | Program | TableFile | RankOrders | TorchSchedule

AnyPlan = (  # all but the first are refused where one is asked for
    FoundPlan | NoPlanFound | NoClusterPlan | PlannedJobs | SideBySide
)
GivenFirst = GivenProblem | GivenOrder | AnyPlan | Result
GivenSchedule = Schedule | Result | Repair | GivenOrder | FilePath
GivenRun = GivenSchedule | ReplayReport
Proofs = FilePath | tuple[CandidateBound, ...]
GivenModel = ModelSpec | Callable[[], OwnModel] | str
