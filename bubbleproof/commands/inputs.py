"""What a command is given: a schedule file, a PyTorch table, a problem file, or a family's name.

Wherever a schedule is taken, ``FAMILY key=value ...`` serves as well as a file, and so does the
folder of a plan or a run, for the ``schedule.json`` in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import PLAN_NAME, SCHEDULE_NAME
from bubbleproof.formats.inference import read_timed_table, timed
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.suggestions import did_you_mean
from bubbleproof.theory.families import families, family, parse_parameters
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.chosen import foreign_choice

if TYPE_CHECKING:  # a solver, and a reader of files, is loaded where one is asked for
    from bubbleproof.formats import ProblemFile
    from bubbleproof.solvers.choices.solving_choices import ChoiceResult

SUFFIXES = (".json", ".csv")
DIALECTS: dict[str | None, Literal["new", "old"] | None] = {
    None: None,
    "new": "new",
    "old": "old",
}


def read_schedule_input(
    words: Sequence[str], *, dialect: str | None = None, problem: str | None = None
) -> ScheduleFile:
    """The schedule that the words name. ``problem`` (a file) replaces the one it comes with.

    Starts are the author's where a file tells them, else left-shifted. Raises ``ValueError``
    (``UnusableInput`` for a file's content) in one line.
    """
    if not words:
        raise ValueError(f"expected a schedule file or one of {' '.join(families())}")
    given = _read(words, dialect)
    if problem is None:
        return given
    moved = _on_problem(given, read_problem_input(problem))
    has_own_times = given.schedule is not None and words[0].lower().endswith(".json")
    return moved if has_own_times else timed(moved)


def _read(words: Sequence[str], dialect: str | None) -> ScheduleFile:
    with suppress(OSError):  # a name that is too long is no folder's
        if (Path(words[0]) / SCHEDULE_NAME).is_file():
            from bubbleproof.formats.plans.plan_folder import require_one_plan

            require_one_plan(Path(words[0]))
            words = [str(Path(words[0]) / SCHEDULE_NAME), *words[1:]]
    suffix = Path(words[0]).suffix.lower()
    _require_dialect(dialect, suffix)
    if words[0] in families():
        return _family_member(words)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"expected a schedule (.json), a PyTorch table (.csv) or a family "
            f"({' '.join(families())}), got {words[0]!r}{_meant(words[0], suffix)}"
        )
    if len(words) > 1:
        is_file = words[1].endswith((".toml", ".json"))
        hint = f"; a problem is given as --problem {words[1]}" if is_file else ""
        raise ValueError(f"expected nothing after the file {words[0]}, got {words[1]!r}{hint}")
    if suffix == ".json":
        from bubbleproof.formats.schedule_json import read_schedule

        return _named(read_schedule(words[0]), words[0])
    return read_timed_table(words[0], DIALECTS[dialect])


def _meant(word: str, suffix: str) -> str:
    """What helps where a word names no schedule."""
    if suffix == ".toml":
        return "; a problem has no schedule of its own, solve finds one"
    return did_you_mean(word, families())


def _require_dialect(dialect: str | None, suffix: str) -> None:
    """Raise ``ValueError`` for a dialect that is unknown, or of what is no table."""
    if dialect not in DIALECTS:
        raise ValueError(f"--dialect must be new or old, got {dialect!r}")
    if dialect is not None and suffix != ".csv":
        raise ValueError(f"--dialect is for a PyTorch table (.csv), got --dialect {dialect} alone")


def _family_member(words: Sequence[str]) -> ScheduleFile:
    found = family(words[0]).member(parse_parameters(words[1:]))
    name = " ".join(words)
    return ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline, name=name)


def _named(file: ScheduleFile, path: str) -> ScheduleFile:
    return replace(file, name=file.name or Path(path).stem)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemInput:
    """A problem to solve or to check against; ``file`` is there when it came as TOML.

    ``choices`` is there once a solver chose what the problem is; ``is_demanded`` says that the
    problem has precedences that a command demanded as well.
    """

    name: str
    problem: Problem
    pipeline: Pipeline | None
    file: ProblemFile | None
    choices: ChoiceResult | None = None
    is_demanded: bool = False

    @classmethod
    def of(cls, file: ProblemFile) -> ProblemInput:
        """That of a problem file."""
        pipeline = file.pipeline
        return cls(name=file.name, problem=pipeline.problem(), pipeline=pipeline, file=file)

    @property
    def has_choices(self) -> bool:
        """Whether it leaves something to the solver to choose."""
        return self.file is not None and self.file.allowed is not None

    @property
    def starts(self) -> Sequence[tuple[str, Program]]:
        """The published orders to begin from; none for a problem built by hand."""
        from bubbleproof.solvers.shortening.known_orders import known_orders

        return [] if self.pipeline is None else known_orders(self.pipeline)


def read_problem_input(path: str) -> ProblemInput:
    """The problem of a problem file (.toml), or the one a schedule file (.json) embeds."""
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        from bubbleproof.formats.problem_toml import read_problem

        return ProblemInput.of(read_problem(path))
    if suffix == ".json":
        from bubbleproof.formats.schedule_json import read_schedule

        embedded = _named(read_schedule(path), path)
        return ProblemInput(
            name=embedded.name, problem=embedded.problem, pipeline=embedded.pipeline, file=None
        )
    expected = "a problem file ending in .toml (or a schedule in .json)"
    raise UnusableInput("", expected, suffix or "no ending", path)


def require_problem_file(path: str, *, asker: str) -> None:
    """Raise ``ValueError`` for what is no problem file, saying who takes the folder of a plan."""
    if path.endswith(".toml"):
        return
    where = Path(path)
    is_plan = where.name == PLAN_NAME or (where / PLAN_NAME).is_file()
    hint = f", a plan: verify, show and hand-over take it, {asker} the file it was made of"
    raise ValueError(f"{asker} takes a problem file (.toml), got {path!r}{hint if is_plan else ''}")


def _on_problem(given: ScheduleFile, source: ProblemInput) -> ScheduleFile:
    """The given program, with its times, on another problem."""
    if source.file is not None and source.file.allowed is not None:
        return _of_choices(given, source.file)
    resources = len(source.problem.resources)
    used = int(np.max(given.program.resource, initial=-1)) + 1
    if used > resources:
        raise ValueError(
            f"{given.name} uses {used} resources, the problem {source.name} has {resources}"
        )
    return replace(given, problem=source.problem, pipeline=source.pipeline)


def _of_choices(given: ScheduleFile, file: ProblemFile) -> ScheduleFile:
    """The given schedule as one of the choices that a problem file leaves open."""
    if given.pipeline is None:
        why: str | None = "it comes without the pipeline that tells its choices"
    else:
        why = foreign_choice(file.pipeline, file.allowed, given.pipeline)
    if why is not None:
        raise ValueError(f"{given.name} is none of the choices of {file.name}: {why}")
    return replace(given, allowed=file.allowed)
