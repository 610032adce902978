"""What the page of ``serve`` begins with: the schedules of the command's words, and what it opens.

The words are a schedule file, the folder of a plan or a run, a family with parameters, or a problem
file. A problem file offers the orders of every published family that takes its pipeline, the
shortest one that is right first, then the families that take it in another shape only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.commands.serving.pipeline_changes import ChangesLayout, changed, numbers
from bubbleproof.commands.serving.view_request import FileRequest
from bubbleproof.formats import ScheduleFile, read_problem
from bubbleproof.formats.format_table import Holds, endings
from bubbleproof.formats.inference import timed
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.formats.printable import on_one_line
from bubbleproof.theory.families import (
    Family,
    FamilyParameters,
    families,
    family,
    parse_parameters,
)
from bubbleproof.theory.families.parameters import SEQUENCES
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.verify.every_rule import check_every_rule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfferedSchedule:
    """The orders of a file, which are those of its shape; or a ``family``'s order of a problem's
    pipeline, whose shape may be changed."""

    name: str
    source: ScheduleFile | Pipeline
    family: str = ""

    @property
    def pipeline(self) -> Pipeline | None:
        return self.source.pipeline if isinstance(self.source, ScheduleFile) else self.source

    @classmethod
    def of(cls, given: ScheduleFile) -> OfferedSchedule:
        """The orders of a file."""
        return cls(name=given.name, source=given)

    @classmethod
    def ordered(cls, family: str, pipeline: Pipeline) -> OfferedSchedule:
        """A family's order."""
        return cls(name=family, source=pipeline, family=family)

    def made(self, changes: ChangesLayout | None = None) -> ScheduleFile:
        """The schedule, with some numbers changed.

        Raises ``ValueError`` in one line for changes that there is no schedule of.
        """
        if isinstance(self.source, ScheduleFile):
            named = replace(self.source, name=self.name)
            return named if changes is None else retimed(named, changes)
        wanted = self.source if changes is None else changed(self.source, changes)
        known = family(self.family)
        if (why := known.refusal(wanted)) is not None:
            raise ValueError(f"{self.family}: {why}")
        problem = wanted.problem()
        program = with_messages_in_order(problem, known.program(wanted))
        made = ScheduleFile(problem=problem, program=program, pipeline=wanted, name=self.name)
        return timed(made)


def retimed(given: ScheduleFile, changes: ChangesLayout) -> ScheduleFile:
    """The same orders where ticks or links are others.

    Raises ``ValueError`` in one line for another shape, and for a problem without a pipeline.
    """
    if changes.of_shape:
        names = " and ".join(changes.of_shape)
        raise ValueError(f"{names}: the orders of {given.name} are those of its own shape")
    if given.pipeline is None:
        raise ValueError(f"{given.name} is of a problem built by hand, which has no such numbers")
    pipeline = changed(given.pipeline, changes)
    made = ScheduleFile(
        problem=pipeline.problem(), program=given.program, pipeline=pipeline, name=given.name
    )
    return timed(made)


def offered_schedules(words: Sequence[str], dialect: str | None = None) -> list[OfferedSchedule]:
    """Every schedule that the words offer; the page begins with the first.

    Raises ``ValueError`` in one line for words that name none.
    """
    if not words[0].lower().endswith(endings(Holds.PROBLEM)):
        return [OfferedSchedule.of(read_schedule_input(words, dialect=dialect))]
    if len(words) > 1:
        raise ValueError(f"expected nothing after the problem {words[0]}, got {words[1]!r}")
    pipeline = read_problem(words[0]).pipeline
    offers = [OfferedSchedule.ordered(name, pipeline) for name in families()]
    fitting = [one for one in offers if family(one.family).refusal(pipeline) is None]
    if not fitting:
        raise ValueError(
            f"{words[0]}: no published family takes this problem as it is; give serve a schedule "
            "of it, as solve writes one with -o schedule.json"
        )
    others = [one for one in offers if one not in fitting]
    others = [replace(one, name=f"{one.name} (in another shape)") for one in others]
    return [*sorted(fitting, key=lambda one: _badness(one.made())), *others]


def _badness(given: ScheduleFile) -> tuple[bool, int]:
    """Wrong ones last, short ones first."""
    if given.schedule is None:  # it comes to a standstill
        return True, 0
    is_right = check_every_rule(given.to_judge).ok
    return not is_right, measure(given.problem, given.schedule).makespan


def opened_schedules(asked: FileRequest) -> list[OfferedSchedule]:
    """What the file offers, under the name that the reader gave it.

    Raises ``ValueError`` in one line that names the file for what is no schedule and no problem.
    """
    name = on_one_line(asked.name)
    ending = Path(name).suffix.lower()
    if ending not in (known := endings(Holds.SCHEDULE, Holds.PROBLEM)):
        raise ValueError(f"{name}: expected a file ending in {' '.join(known)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"opened{ending}"
        path.write_text(asked.text, encoding="utf-8", newline="")
        try:
            found = offered_schedules([str(path)])
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from None
    stem = Path(name).stem
    names = (stem if one.name == "opened" else f"{stem}: {one.name}" for one in found)
    return [replace(one, name=name) for one, name in zip(found, names, strict=True)]


_SHORT = ("v", "s", "f", "R", *SEQUENCES)  # in the order in which a page shows them


def controls(words: Sequence[str], offered: Sequence[OfferedSchedule]) -> dict[str, object]:
    """What the page may be asked for, and what it begins with (JSON)."""
    is_family = words[0] in families()
    first = parse_parameters(words[1:]) if is_family else FamilyParameters(p=4, m=8)
    return {
        "families": {
            name: {"fields": _fields(family), "values": _values(family, first)}
            for name, family in families().items()
        },
        "family": words[0] if is_family else None,
        "given": [] if is_family else [offer(each) for each in offered],
    }


def offer(each: OfferedSchedule) -> dict[str, object]:
    """A schedule that may be asked for: its name, and the numbers that may be changed."""
    pipeline = each.pipeline
    shown = {} if pipeline is None else numbers(pipeline, with_shape=bool(each.family))
    return {"name": each.name, "numbers": shown}


def _fields(family: Family) -> list[str]:
    told = family.full_params(FamilyParameters(p=1, m=1), Pipeline(num_ranks=1, num_microbatches=1))
    ticks = (name for name in ("tF", "tB", "tI", "tW") if name in told)
    return ["p", "m", *(name for name in _SHORT if name in family.options), *ticks]


def _values(family: Family, first: FamilyParameters) -> dict[str, str]:
    """The first parameters as far as the family takes them; what is left out is its own."""
    found = {"p": first.p, "m": first.m, "tF": first.tF}
    if family.is_split:
        found["tI"], found["tW"] = first.split_ticks if first.tB is None else (1, 1)
    elif "tB" in _fields(family):
        found["tB"] = first.full_ticks
    words = {name: str(value) for name, value in found.items()}
    for name in family.options:
        value = getattr(first, name)
        if value is not None:
            words[name] = ",".join(map(str, value)) if name in SEQUENCES else str(value)
    return words
