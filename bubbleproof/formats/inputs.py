"""What words name: a file of any format, the folder of a plan or a run, a family with parameters.

Wherever a schedule is taken, ``FAMILY key=value ...``, in one word or in several, serves as well as
a file; and wherever a problem is taken, what has one: a schedule, a plan, a family's words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import PLAN_NAME, MissingFile
from bubbleproof.formats.format_table import (
    FORMATS,
    Format,
    Holds,
    endings,
    file_within,
    format_of,
)
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.families import families, family, parse_parameters
from bubbleproof.theory.near_names import did_you_mean

if TYPE_CHECKING:  # a reader of files is loaded where one is asked for
    from bubbleproof.formats.plans.plan_json import PlanFile
    from bubbleproof.formats.problem_toml import ProblemFile


def read_schedule_input(
    words: Sequence[str], *, dialect: str | None = None, problem: str | None = None
) -> ScheduleFile:
    """The schedule that the words name. ``problem`` replaces the one it comes with.

    Starts are the author's where a file tells them, else left-shifted. Raises ``ValueError``
    (``UnusableInput`` for a file's content) in one line.
    """
    if not words:
        raise ValueError(f"expected a schedule file or one of {' '.join(families())}")
    given, known = _read(_parts(words), dialect)
    if problem is None:
        return given
    moved = _on_problem(given, read_problem_input(problem))
    from bubbleproof.formats.inference import timed

    has_times = given.schedule is not None and known is not None and known.is_whole
    return moved if has_times else timed(moved)


def read_problem_input(given: str) -> ProblemFile | ScheduleFile:
    """What states a problem: a problem file, or a schedule that comes with its own.

    Raises ``ValueError`` as ``read_schedule_input`` does.
    """
    known = format_of(given)
    if known is not None and known.holds is Holds.PROBLEM:
        return cast("ProblemFile", known.read(given))
    if is_family(given) or (known is not None and known.is_whole):
        return read_schedule_input([given])
    expected = f"a problem file ending in {endings(Holds.PROBLEM)[0]} (or a schedule in .json)"
    if known is None:
        raise UnusableInput(
            "", expected, found_instead(given) or Path(given).suffix or "no ending", given
        )
    raise other_thing(given, known)


def is_family(given: str) -> bool:
    """Whether this is a family's name, with parameters or without."""
    return given.partition(" ")[0] in families()


def read_plan_input(words: Sequence[str]) -> PlanFile | None:
    """The plan that is named, by its file or its folder; None where the words name no plan."""
    if len(words) != 1 or not is_plan(words[0]):
        return None
    from bubbleproof.formats.plans.plan_folder import read_plan_at

    return read_plan_at(words[0])


def is_plan(path: str) -> bool:
    """Whether this is a plan's folder, or a file that says to be a plan."""
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, PLAN_NAME))
    known = format_of(path, is_sure=True)
    return known is not None and known.holds is Holds.PLAN


def require_problem_file(path: str, *, asker: str) -> None:
    """Raise ``ValueError`` for what is no problem file, saying what it is."""
    if path.endswith(endings(Holds.PROBLEM)):
        return
    known = format_of(path, is_sure=True)
    use = (
        found_instead(path) if known is None else f"{known.name}: {known.use.replace('FILE', path)}"
    )
    hint = f", {use}" if use else ""
    if is_plan(path):
        hint = f", a plan: verify, show and hand-over take it, {asker} the file it was made of"
    raise ValueError(f"{asker} takes a problem file (.toml), got {path!r}{hint}")


def found_instead(path: str) -> str:
    """What is given in place of a file that is asked for, where it is a folder or a name."""
    where = Path(path)
    if os.path.isdir(where):  # False of a name that is too long, as below
        return "a folder: name the file in it"
    from bubbleproof.costs import known_models

    if path.lower() in known_models():
        table = f'[model] name = "{path.lower()}"'
        return f"the name of a model: write {table} with [cluster] and [batch] into a file"
    near = where.with_suffix(endings(Holds.PROBLEM)[0])
    if not where.suffix and os.path.isfile(near):
        return f"no ending (did you mean {str(near)!r}?)"
    return ""


def require_format(path: str, *names: str) -> None:
    """Raise ``ValueError`` for a file that says to be of another format than those of the names."""
    known = format_of(path, is_sure=True)
    if known is not None and known.marks and known.name not in names:
        raise other_thing(path, known)


def is_schedule_file(word: str) -> bool:
    """Whether a word is a file or a folder, rather than a family or its parameters."""
    return word.lower().endswith(endings(Holds.SCHEDULE, Holds.PROBLEM)) or os.path.exists(word)


def other_thing(path: str, known: Format) -> ValueError:
    """What refuses a file that holds another thing: what it is, and what it is good for."""
    if not os.path.exists(path):
        return MissingFile(subject=path)
    use = f": {known.use.replace('FILE', path)}" if known.use else ""
    return ValueError(f"{path} is {known.name}{use}")


def _parts(words: Sequence[str]) -> Sequence[str]:
    """A family's words apart, where they stand in one."""
    if len(words) > 1 or is_schedule_file(words[0]):
        return words
    return words[0].split() or words


def _read(words: Sequence[str], dialect: str | None) -> tuple[ScheduleFile, Format | None]:
    """The schedule, and the format of its file."""
    path = file_within(words[0])
    is_family = words[0] in families() and path == Path(words[0])
    known = None if is_family else format_of(path)
    _require_dialect(dialect, known)
    if is_family:
        return _family_member(words), None
    if known is None:
        schedules = (each for each in FORMATS if each.holds is Holds.SCHEDULE)
        forms = ", ".join(f"{each.name} ({each.endings[0]})" for each in schedules)
        hint = did_you_mean(words[0], families())
        if not hint and (instead := found_instead(words[0])):
            hint = f", {instead}"
        expected = f"expected {forms} or a family ({' '.join(families())})"
        raise ValueError(f"no schedule {words[0]!r}{hint}; {expected}")
    if known.holds not in (Holds.SCHEDULE, Holds.PLAN):
        raise other_thing(words[0], known)
    if len(words) > 1:
        is_file = words[1].endswith(endings(Holds.PROBLEM, Holds.PLAN))
        hint = f"; a problem is given as --problem {words[1]}" if is_file else ""
        raise ValueError(f"expected nothing after the file {words[0]}, got {words[1]!r}{hint}")
    if path != Path(words[0]):
        from bubbleproof.formats.plans.plan_folder import require_one_plan

        require_one_plan(Path(words[0]))
    name = words[0] if path == Path(words[0]) else str(path)
    found = known.read(name, dialect)
    if known.holds is Holds.PLAN:
        return cast("PlanFile", found).schedule, known
    file = cast("ScheduleFile", found)
    return replace(file, name=file.name or path.stem), known


def _require_dialect(dialect: str | None, known: Format | None) -> None:
    """Raise ``ValueError`` for a dialect that is unknown, or of what is no table."""
    if dialect is None or (known is not None and dialect in known.dialects):
        return
    [table] = [each for each in FORMATS if each.dialects]
    if dialect not in table.dialects:
        raise ValueError(f"--dialect must be {' or '.join(table.dialects)}, got {dialect!r}")
    about = f"{table.name} ({table.endings[0]})"
    raise ValueError(f"--dialect is for {about}, got --dialect {dialect} alone")


def _family_member(words: Sequence[str]) -> ScheduleFile:
    found = family(words[0]).member(parse_parameters(words[1:]))
    name = " ".join(words)
    return ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline, name=name)


def _on_problem(given: ScheduleFile, source: ProblemFile | ScheduleFile) -> ScheduleFile:
    """The given program, with its times, on another problem."""
    if isinstance(source, ScheduleFile):
        problem = source.problem
    elif source.allowed is not None:
        return _of_choices(given, source)
    else:
        problem = source.pipeline.problem()
    resources = len(problem.resources)
    used = int(np.max(given.program.resource, initial=-1)) + 1
    if used > resources:
        raise ValueError(
            f"{given.name} uses {used} resources, the problem {source.name} has {resources}"
        )
    return replace(given, problem=problem, pipeline=source.pipeline)


def _of_choices(given: ScheduleFile, file: ProblemFile) -> ScheduleFile:
    """The given schedule as one of the choices that a problem file leaves open."""
    from bubbleproof.verify.candidates.chosen import foreign_choice

    if given.pipeline is None:
        why: str | None = "it comes without the pipeline that tells its choices"
    else:
        why = foreign_choice(file.pipeline, file.allowed, given.pipeline)
    if why is not None:
        raise ValueError(f"{given.name} is none of the choices of {file.name}: {why}")
    return replace(given, allowed=file.allowed)
