"""Measures of a schedule as a result: facts, a table and floats beside the exact ratios.

An exact ratio is a ``Fraction`` under its name, such as ``idle_ratio``, and a ``float`` under that
name with ``_float`` behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

from bubbleproof.facts import Fact, FactCells, FactSource
from bubbleproof.report.amounts import each_load, each_time, ratio, time
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleMeasures(FactSource, Measures):
    """What a schedule costs, as ``theory.model.measures`` defines it, and in which units."""

    columns: ClassVar[FactCells] = ("measure", "expected", "found", "verdict")
    unit: str = "tick"
    memory_unit: str = "unit"

    @property
    def idle_ratio_float(self) -> float:
        """``idle_ratio``, rounded."""
        return float(self.idle_ratio)

    @property
    def idle_over_work_float(self) -> float:
        """``idle_over_work``, rounded."""
        return float(self.idle_over_work)

    def facts(self) -> Iterator[Fact]:
        """Every measure by its name."""
        return measure_facts(self, self.unit, self.memory_unit)


def measured(problem: Problem, schedule: Schedule) -> ScheduleMeasures:
    """Measure a schedule, as ``measure`` does."""
    found = measure(problem, schedule)
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    return ScheduleMeasures(**values, unit=problem.unit, memory_unit=problem.memory_unit)


def measure_facts(
    measured: Measures, unit: str, memory_unit: str, within: str = ""
) -> Iterator[Fact]:
    """Every measure under its name, ``within`` an object: times and loads in their units."""
    for field in fields(Measures):
        value = getattr(measured, field.name)
        if isinstance(value, Fraction):
            told = ratio(value)
        elif isinstance(value, int):
            told = time(value, unit)
        else:
            is_load = field.name.startswith("peak")
            told = each_load(value, memory_unit) if is_load else each_time(value, unit)
        yield Fact(key=within + field.name, label=field.name, value=value, told=told)
