"""The controls of the page of ``serve``: what may be asked for, and what it begins with."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.serving.offered_schedules import OfferedSchedule
from bubbleproof.commands.serving.pipeline_changes import numbers
from bubbleproof.theory.families import (
    Family,
    FamilyParameters,
    families,
    parse_parameters,
)
from bubbleproof.theory.families.parameters import SEQUENCES

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
    shown = {} if pipeline is None else numbers(pipeline, with_shape=each.has_shape)
    return {"name": each.name, "numbers": shown}


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
