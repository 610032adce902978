"""What the page of ``serve`` begins with: the schedules of the command's words, and its controls.

The words are a schedule file, a family with parameters, or a problem file. A problem file offers
the orders of every published family that takes its pipeline, the shortest one that is right first.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.inputs import read_problem_input, read_schedule_input
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.timed_table import timed
from bubbleproof.theory.families import (
    Family,
    FamilyParameters,
    families,
    parse_parameters,
    published_programs,
)
from bubbleproof.theory.families.parameters import SEQUENCES
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify.every_rule import check_every_rule

_SHORT = ("v", "s", "f", "R", *SEQUENCES)  # in the order in which a page shows them


def offered_schedules(words: Sequence[str], dialect: str | None = None) -> list[ScheduleFile]:
    """Every schedule that the words offer; the page begins with the first.

    Raises ``ValueError`` in one line for words that name none.
    """
    if not words[0].lower().endswith(".toml"):
        return [read_schedule_input(words, dialect=dialect)]
    if len(words) > 1:
        raise ValueError(f"expected nothing after the problem {words[0]}, got {words[1]!r}")
    problem = read_problem_input(words[0])
    pipeline = problem.pipeline
    made = [
        timed(ScheduleFile(problem=problem.problem, program=program, pipeline=pipeline, name=name))
        for name, program in (() if pipeline is None else published_programs(pipeline))
    ]
    if not made:
        raise ValueError(
            f"{words[0]}: no published family takes this problem as it is; give serve a schedule "
            "of it, as solve writes one with -o schedule.json"
        )
    return sorted(made, key=_badness)


def _badness(given: ScheduleFile) -> tuple[bool, int]:
    """Wrong ones last, short ones first."""
    if given.schedule is None:  # it comes to a standstill
        return True, 0
    is_right = check_every_rule(given.to_judge).ok
    return not is_right, measure(given.problem, given.schedule).makespan


def controls(words: Sequence[str], offered: Sequence[ScheduleFile]) -> dict[str, object]:
    """What the page may be asked for, and what it begins with (JSON)."""
    is_family = words[0] in families()
    first = parse_parameters(words[1:]) if is_family else FamilyParameters(p=4, m=8)
    return {
        "families": {
            name: {"fields": _fields(family), "values": _values(family, first)}
            for name, family in families().items()
        },
        "family": words[0] if is_family else None,
        "given": [] if is_family else [each.name for each in offered],
    }


def _fields(family: Family) -> list[str]:
    ticks = ("tF", "tI", "tW") if family.is_split else ("tF", "tB")
    return ["p", "m", *(name for name in _SHORT if name in family.options), *ticks]


def _values(family: Family, first: FamilyParameters) -> dict[str, str]:
    """The first parameters as far as the family takes them; what is left out is its own."""
    found = {"p": first.p, "m": first.m, "tF": first.tF}
    if family.is_split:
        found["tI"], found["tW"] = first.split_ticks if first.tB is None else (1, 1)
    else:
        found["tB"] = first.full_ticks
    words = {name: str(value) for name, value in found.items()}
    for name in family.options:
        value = getattr(first, name)
        if value is not None:
            words[name] = ",".join(map(str, value)) if name in SEQUENCES else str(value)
    return words
