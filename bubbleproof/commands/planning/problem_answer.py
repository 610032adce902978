"""The plan of a problem file: its candidates, the best first, each with why it lost.

What schedules take where durations spread is sampled beside. The folder holds ``plan.json`` (the
problem file, the winner and its schedule), ``schedule.json`` and the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bubbleproof.commands.planning.other_plans import OtherChoice, paper_planners
from bubbleproof.commands.planning.plan_answer import PlanAnswer, PlanTable
from bubbleproof.commands.planning.plan_lines import problem_lines, why_tables
from bubbleproof.commands.planning.plan_report import plan_report
from bubbleproof.formats import UnusableInput
from bubbleproof.formats.plans.bundle_json import write_bundle
from bubbleproof.formats.plans.plan_folder import planned_file, write_plan_folder
from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.planners.jitter import AnyPlan, timed_candidates
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.plan_results import (
    COLUMNS,
    candidate_rows,
    plan_facts,
    value_of,
)
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.nearest_shape import nearest_change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemQuestion:
    """A problem file with a table ``[plan]``, and the paper beside whose choice it is planned."""

    path: str
    file: ProblemFile
    paper: str | None = None

    @classmethod
    def of(cls, path: str, paper: str | None) -> ProblemQuestion:
        """Raises ``UnusableInput`` for a file without such a table."""
        file = read_problem(path)
        if file.plan is None:
            raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", path)
        return cls(path=path, file=file, paper=paper)

    @property
    def time_limit(self) -> int | None:
        """Seconds that the file gives."""
        return self.file.time_limit

    @property
    def memory(self) -> int | None:
        """The bytes that an engine may take, of the file."""
        return self.file.memory

    def answer(self, options: PlanOptions, executor: Executor | None = None) -> PlanAnswer:
        """Plan it. Raises ``ValueError`` where a number forbids every candidate."""

        def search(known: Sequence[KnownSchedule] = ()) -> AnyPlan:
            found = planned(self.file, options, executor, known)
            _refuse_illegal(self.path, found)
            return found

        if self.paper is None:
            return self._told(search(), None, options.time_limit)
        beside = paper_planners().beside_problem
        return self._told(*beside(self.paper, self.file, options, search), options.time_limit)

    def _told(self, found: AnyPlan, shown: OtherChoice | None, limit: float) -> PlanAnswer:
        file, timed = self.file, timed_candidates(found, self.file.spread, limit)
        beside = [] if shown is None else shown.facts(found, value_of(found), file.pipeline.unit)
        proofs = partial(write_bundle, space=found.space, bundle=found.bundle, name=file.name)

        def candidates(is_all: bool) -> PlanTable:
            rows = candidate_rows(file, found, timed, *([None] if is_all else []))
            return PlanTable(title=f"{file.name}: candidates", columns=COLUMNS, rows=rows)

        answer = PlanAnswer(
            name=file.name,
            found=found,
            lines=problem_lines(file, found, timed, beside),
            stated=[*plan_facts(file, found, timed), *beside],
            candidates=candidates,
            why=why_tables(file, found),
            proofs=() if found.status is Status.INFEASIBLE else (proofs,),
        )
        if not isinstance(found, Plan):
            return answer
        write = partial(_write, path=self.path, file=file, found=found, shown=shown)
        report = partial(plan_report, file, found, timed, shown, answer.rows)
        return answer.with_plan(found, write, report)


def _write(
    folder: Path, path: str, file: ProblemFile, found: Plan, shown: OtherChoice | None
) -> None:
    """The plan and its schedule, and a paper's."""
    text = Path(path).read_text(encoding="utf-8")
    write_plan_folder(folder, planned_file(text, file, found.space, found.winner))
    if shown is not None:
        shown.write(folder, file)


def planned(
    file: ProblemFile,
    options: PlanOptions,
    executor: Executor | None = None,
    known: Sequence[KnownSchedule] = (),
) -> AnyPlan:
    """The plan of a problem file. Raises ``ValueError`` for one whose objective is no makespan."""
    if file.plan is None or file.objective != "makespan":
        raise ValueError(f"a plan is made for the makespan, {file.name} asks for {file.objective}")
    return plan(file.plan, options, executor=executor, known=known)


def _refuse_illegal(path: str, found: AnyPlan) -> None:
    """Raise ``ValueError`` where a number forbids every candidate."""
    if all(one.status is Outcome.NOT_LEGAL for one in found.judged):
        nearest = nearest_change(found.space)
        repair = "" if nearest is None else f"; use {nearest}"
        raise ValueError(f"{path}: no candidate divides: {found.judged[0].reason}{repair}")
