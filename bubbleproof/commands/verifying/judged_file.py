"""One schedule of many, judged: the verdict of each rule, and each trouble with its place.

A *trouble* is a violation, a rule that could not be decided, or a file that cannot be read. Its
place is that of the first action it names that stands in the table, or what the reader names; of a
file that is no table, and of a violation that names no action, it is the file as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bubbleproof.commands.output import status_of
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.format_table import format_of
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.formats.table_places import TablePlace, place_at
from bubbleproof.report.schedule_verdict import ScheduleVerdict
from bubbleproof.verify import Semantics, Verdict
from bubbleproof.verify.every_rule import check_every_rule

UNREADABLE = "readable"  # stands where a rule's name does
_PLACE = re.compile(r"row ([0-9]{1,9})(?:, column ([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuestion:
    """What is asked of one of many schedules: ``words`` name it."""

    words: tuple[str, ...]
    semantics: tuple[Semantics, ...]
    problem: str | None = None
    dialect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is wrong with a schedule, in one sentence and perhaps a grid, and where.

    ``rule`` is a rule's name in small letters with its case, or ``readable``.
    """

    rule: str
    message: str
    picture: str = ""
    place: TablePlace | None = None
    is_decided: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFile:
    """A schedule of many, what each rule says of it, and its exit status.

    ``rules`` are all that were decided, in order, also those that hold.
    """

    path: str
    name: str
    status: int
    rules: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    content: dict[str, object]


def judge(asked: FileQuestion) -> JudgedFile:
    """Read and judge one schedule; what cannot be read is a trouble and status 2."""
    path = asked.words[0] if len(asked.words) == 1 else " ".join(asked.words)
    try:
        given = read_schedule_input(asked.words, dialect=asked.dialect, problem=asked.problem)
        verdict = check_every_rule(given.to_judge, asked.semantics)
        places = _places(asked)
    except (ValueError, OSError) as error:
        trouble = Trouble(rule=UNREADABLE, message=str(error), place=_named(asked, error))
        content: dict[str, object] = {"path": path, "name": None, "error": str(error)}
        return JudgedFile(
            path=path,
            name=path,
            status=2,
            rules=(UNREADABLE,),
            troubles=(trouble,),
            content=content,
        )
    return JudgedFile(
        path=path,
        name=given.name,
        status=status_of(verdict),
        rules=tuple(_rule(d.rule.name, d.detail) for d in verdict.decisions),
        troubles=_troubles(verdict, places),
        content={"path": path, "name": given.name, **ScheduleVerdict.of(verdict).to_dict()},
    )


def _rule(name: str, detail: str = "") -> str:
    return name.lower() + (f" ({detail})" if detail else "")


def _troubles(verdict: Verdict, places: dict[str, TablePlace]) -> tuple[Trouble, ...]:
    violated = [
        Trouble(
            rule=_rule(decision.rule.name, decision.detail),
            message=violation.message,
            picture=violation.picture,
            place=next((places[task] for task in violation.tasks if task in places), None),
        )
        for decision in verdict.decisions
        for violation in decision.violations
    ]
    undecided = [
        Trouble(rule=_rule(rule.name), message=why, is_decided=False)
        for rule, why in verdict.undecided
    ]
    return (*violated, *undecided)


def _places(asked: FileQuestion) -> dict[str, TablePlace]:
    """Where the actions of a table stand; nothing of what is none."""
    known = format_of(asked.words[0]) if len(asked.words) == 1 else None
    return {} if known is None else known.placed(asked.words[0], asked.dialect)


def _named(asked: FileQuestion, error: Exception) -> TablePlace | None:
    """The row, and perhaps the cell, that a refusal names."""
    found = _PLACE.match(error.where) if isinstance(error, UnusableInput) else None
    if found is None:
        return None
    row, column = int(found[1]), int(found[2] or 1)
    try:
        cell = place_at(asked.words[0], row, column) if found[2] else None
    except (ValueError, OSError):
        cell = None
    return cell or TablePlace(row=row, column=column, first=1, last=1)
