"""Periodic schedules read off two schedules of a family, one period apart; nothing is trusted here.

``fitted`` takes the family's left-shifted schedules at m and m + step microbatches. Every class
must have the same starts in both up to the middle, and from there on starts that lie one period
later; the middle is the piece that grows. Pieces and surroundings are then made as long as they can
be, and n is counted from the least m for which no growing piece is negative and the family's
schedule has these starts. What does not repeat in this way raises ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from bubbleproof.papers.theorems.periodic_classes import ClassKey, name_of, rules_of, starts_of
from bubbleproof.papers.theorems.periodic_sample import Growth, Sample
from bubbleproof.papers.theorems.periodic_schedule import (
    Keys,
    LinearForm,
    PeriodicSchedule,
)
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.model.measures import measure


def fitted(
    member_of: Callable[[int], FamilyMember],
    *,
    shape: str,
    size: int,
    repeats: int,
    keys: Keys | None = None,
) -> PeriodicSchedule:
    """The periodic schedule of ``member_of(m)``, read off at m = ``size`` and one period later."""
    found = member_of(size)
    step = repeats * (2 if found.pipeline.is_bidirectional else 1)
    rows, longer = starts_of(found, repeats), starts_of(member_of(size + step), repeats)
    growth, period = growth_of(rows, longer)
    sample = Sample(rows, period, growth, rules_of(found, repeats))
    classes = sample.classes(keys)
    ends = [(part.first, part.last) for task in classes for part in task.pieces]
    ends += [(part.first, part.last) for task in classes for part in task.surroundings]
    grown = [last.base - first.base for first, last in ends if last.per_period > first.per_period]
    spare = max(0, min(min(grown) + 1, (size - 1) // step))
    makespan = max(row[-1] + task.ticks for row, task in zip(sample.rows, classes, strict=True))
    schedule = PeriodicSchedule(
        shape=shape,
        least=size,
        step=step,
        classes=tuple(classes),
        makespan=LinearForm(makespan, 0, period),
        peaks=measure(found.problem, found.schedule).peak_activations,
    )
    return _least(_from_period(schedule, spare), member_of, repeats)


def _least(
    schedule: PeriodicSchedule, member_of: Callable[[int], FamilyMember], repeats: int
) -> PeriodicSchedule:
    """The schedule from the least m on at which the family, too, is what it is later.

    Several families order few microbatches in another way.
    """
    while True:
        try:
            rows = starts_of(member_of(schedule.least), repeats)
        except ValueError:  # it refuses so few microbatches
            rows = {}
        told = {task.name: schedule.starts(k, 0) for k, task in enumerate(schedule.classes)}
        if told == {name_of(key): row for key, row in rows.items()}:
            return schedule
        schedule = _from_period(schedule, -1)


def _from_period(schedule: PeriodicSchedule, earlier: int) -> PeriodicSchedule:
    """The schedule with n counted from ``earlier`` periods before."""
    return replace(
        schedule,
        least=schedule.least - schedule.step * earlier,
        classes=_recounted(schedule.classes, earlier),
        makespan=schedule.makespan.from_period(earlier),
    )


def growth_of(
    rows: dict[ClassKey, list[int]], longer: dict[ClassKey, list[int]]
) -> tuple[dict[ClassKey, Growth], int]:
    """How each class grows, and the ticks of a period, the same for all of them.

    Raises ``ValueError`` for a class that grows otherwise.
    """
    found, periods = dict[ClassKey, Growth](), set[int]()
    if rows.keys() != longer.keys():
        raise ValueError("m + step has other classes of tasks than m")
    for key, row in rows.items():
        late, middle = longer[key], len(row) // 2
        if late == row:
            found[key] = Growth.FRONT
        elif len(late) == len(row):
            found[key] = Growth.BACK
            periods |= {b - a for a, b in zip(row, late, strict=True)}
        elif len(late) == len(row) + 1 and late[: middle + 1] == row[: middle + 1]:
            found[key] = Growth.MIDDLE
            periods |= {b - a for a, b in zip(row[middle:], late[middle + 1 :], strict=True)}
        else:
            raise ValueError(f"{name_of(key)} starts otherwise at the front when m grows")
    if len(periods) != 1:
        raise ValueError(f"the back moves by {sorted(periods)[:5]} ticks, not by one period")
    return found, periods.pop()


FittedValue = TypeVar("FittedValue")


def _recounted(value: FittedValue, spare: int) -> FittedValue:
    """The value, its lines with n counted from ``spare`` periods earlier on."""
    found: object = value
    if isinstance(value, LinearForm):
        found = value.from_period(spare)
    elif isinstance(value, tuple):
        found = tuple(_recounted(part, spare) for part in value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        found = replace(value, **{name: _recounted(part, spare) for name, part in parts.items()})
    return cast("FittedValue", found)
