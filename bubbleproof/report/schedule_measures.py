"""Measures of a schedule as a result: facts, a table and floats beside the exact ratios.

An exact ratio is a ``Fraction`` under its name, such as ``idle_ratio``, and a ``float`` under that
name with ``_float`` behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

from bubbleproof.facts import Fact, FactCells, FactSource, ratio
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMeasures(Measures, FactSource):
    """What a schedule costs, as ``theory.model.measures`` defines it."""

    columns: ClassVar[FactCells] = ("measure", "expected", "found", "verdict")

    @property
    def idle_ratio_float(self) -> float:
        """``idle_ratio``, rounded."""
        return float(self.idle_ratio)

    @property
    def idle_over_work_float(self) -> float:
        """``idle_over_work``, rounded."""
        return float(self.idle_over_work)

    def facts(self) -> list[Fact]:
        """Every measure by its name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return [
            Fact(
                key=name,
                label=name,
                value=value,
                told=ratio(value) if isinstance(value, Fraction) else "",
            )
            for name, value in values.items()
        ]


def measured(problem: Problem, schedule: Schedule) -> ScheduleMeasures:
    """Measure a schedule, as ``measure`` does."""
    found = measure(problem, schedule)
    return ScheduleMeasures(**{field.name: getattr(found, field.name) for field in fields(found)})
