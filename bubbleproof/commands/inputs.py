"""What a command is given: a schedule file, a PyTorch table, a problem file, or a family's name.

Wherever a schedule is taken, ``FAMILY key=value ...`` serves as well as a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bubbleproof.formats import (
    ProblemFile,
    UnusableInput,
    infer_pipeline,
    read_problem,
    read_schedule,
    read_table,
    refuse_cut_off,
)
from bubbleproof.formats.errors import about
from bubbleproof.theory.families import families, family, parse_parameters
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.links import with_messages_in_order
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift, rough_times
from bubbleproof.verify.communication.matching import compute_part

if TYPE_CHECKING:  # a solver is loaded where one is asked for
    from bubbleproof.solvers.choices import ChoiceResult

SUFFIXES = (".json", ".csv")
DIALECTS: dict[str | None, Literal["new", "old"] | None] = {
    None: None,
    "new": "new",
    "old": "old",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleInput:
    """A schedule as it was given.

    ``program`` holds what was given, SEND and RECV included where ``has_communication``;
    ``compute`` the same without them. ``schedule`` is None where the program has no times; the
    starts are the author's where ``has_own_times``, else left-shifted.
    """

    name: str
    problem: Problem
    program: Program
    schedule: Schedule | None
    pipeline: Pipeline | None
    has_communication: bool
    has_own_times: bool = False

    @property
    def compute(self) -> Program:
        if not self.has_communication:
            return self.program
        return with_messages_in_order(self.problem, compute_part(self.program))

    @property
    def known_pipeline(self) -> Pipeline:
        """The pipeline. Raises ``ValueError`` for a problem that was built by hand."""
        if self.pipeline is None:
            raise ValueError(
                f"replay runs pipelines; {self.name} comes with a problem built by hand, which "
                "does not say what its tasks compute: write the file with its pipeline"
            )
        return self.pipeline

    def timed(self) -> Schedule:
        """The schedule; raises ``ValueError`` with the reason where there are no times."""
        if self.schedule is not None:
            return self.schedule
        return left_shift(self.problem, self.compute)

    def timed_roughly(self) -> Schedule:
        """The schedule or, where there are no times, rough ones (``timing.rough_times``)."""
        return self.schedule or rough_times(self.problem, self.compute)


def read_schedule_input(
    words: Sequence[str], *, dialect: str | None = None, problem: str | None = None
) -> ScheduleInput:
    """The schedule that the words name. ``problem`` (a file) replaces the one it comes with.

    Raises ``ValueError`` (``UnusableInput`` for a file's content) in one line.
    """
    if not words:
        raise ValueError(f"expected a schedule file or one of {' '.join(families())}")
    given = _read(words, dialect)
    return given if problem is None else _on_problem(given, read_problem_input(problem))


def _read(words: Sequence[str], dialect: str | None) -> ScheduleInput:
    suffix = Path(words[0]).suffix.lower()
    _require_dialect(dialect, suffix)
    if words[0] in families():
        return _family_member(words)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"expected a schedule (.json), a PyTorch table (.csv) or a family "
            f"({' '.join(families())}), got {words[0]!r}"
        )
    if len(words) > 1:
        is_file = words[1].endswith((".toml", ".json"))
        hint = f"; a problem is given as --problem {words[1]}" if is_file else ""
        raise ValueError(f"expected nothing after the file {words[0]}, got {words[1]!r}{hint}")
    return _schedule_file(words[0]) if suffix == ".json" else _table(words[0], dialect)


def _require_dialect(dialect: str | None, suffix: str) -> None:
    """Raise ``ValueError`` for a dialect that is unknown, or of what is no table."""
    if dialect not in DIALECTS:
        raise ValueError(f"--dialect must be new or old, got {dialect!r}")
    if dialect is not None and suffix != ".csv":
        raise ValueError(f"--dialect is for a PyTorch table (.csv), got --dialect {dialect} alone")


def _family_member(words: Sequence[str]) -> ScheduleInput:
    member = family(words[0]).member(parse_parameters(words[1:]))
    return ScheduleInput(
        name=" ".join(words),
        problem=member.problem,
        program=member.schedule.program,
        schedule=member.schedule,
        pipeline=member.pipeline,
        has_communication=False,
    )


def _schedule_file(path: str) -> ScheduleInput:
    file = read_schedule(path)
    return ScheduleInput(
        name=file.name or Path(path).stem,
        problem=file.problem,
        program=file.program,
        schedule=file.schedule,
        pipeline=file.pipeline,
        has_communication=file.has_communication,
        has_own_times=file.schedule is not None,
    )


def _table(path: str, dialect: str | None) -> ScheduleInput:
    table = read_table(path, dialect=DIALECTS[dialect])
    compute = compute_part(table.program) if table.has_communication else table.program
    pipeline = infer_pipeline(compute, subject=path)
    problem = pipeline.problem()
    with about(path):
        refuse_cut_off(table, problem)
    return _timed(
        ScheduleInput(
            name=Path(path).stem,
            problem=problem,
            program=table.program,
            schedule=None,
            pipeline=pipeline,
            has_communication=table.has_communication,
        )
    )


def _timed(given: ScheduleInput) -> ScheduleInput:
    try:
        return replace(given, schedule=left_shift(given.problem, given.compute))
    except UntimedProgram:
        return replace(given, schedule=None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemInput:
    """A problem to solve or to check against; ``file`` is there when it came as TOML.

    ``choices`` is there once a solver chose what the problem is.
    """

    name: str
    problem: Problem
    pipeline: Pipeline | None
    file: ProblemFile | None
    choices: ChoiceResult | None = None


def read_problem_input(path: str) -> ProblemInput:
    """The problem of a problem file (.toml), or the one a schedule file (.json) embeds."""
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        file = read_problem(path)
        return ProblemInput(
            name=file.name, problem=file.pipeline.problem(), pipeline=file.pipeline, file=file
        )
    if suffix == ".json":
        embedded = read_schedule(path)
        return ProblemInput(
            name=embedded.name or Path(path).stem,
            problem=embedded.problem,
            pipeline=embedded.pipeline,
            file=None,
        )
    expected = "a problem file ending in .toml (or a schedule in .json)"
    raise UnusableInput("", expected, suffix or "no ending", path)


def _on_problem(given: ScheduleInput, source: ProblemInput) -> ScheduleInput:
    """The given program on another problem; its own times are kept where it came with some."""
    if source.file is not None and source.file.allowed is not None:
        raise ValueError(
            f"{source.name} leaves [choices] open, so it is no problem to check {given.name} on; a "
            "schedule that was solved carries its own"
        )
    resources = len(source.problem.resources)
    used = int(np.max(given.program.resource, initial=-1)) + 1
    if used > resources:
        raise ValueError(
            f"{given.name} uses {used} resources, the problem {source.name} has {resources}"
        )
    moved = replace(given, problem=source.problem, pipeline=source.pipeline)
    return moved if given.has_own_times else _timed(moved)
