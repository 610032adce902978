"""What tests ask of a family's members and of orders: their measures, and that every rule holds."""

from __future__ import annotations

from functools import cache

from bubbleproof.theory.families import Family, FamilyMember, member
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check, check_communication


@cache
def measured(family: Family | str, **params: int | tuple[int, ...]) -> Measures:
    """The measures of a family's member, by the parameters' short names."""
    made = member(family, **params) if isinstance(family, str) else family(**params)
    return measure(made.problem, made.schedule)


def assert_every_rule_holds(made: FamilyMember) -> None:
    """For its schedule, and for the messages of its program under every semantics."""
    _assert_holds(made.problem, made.schedule, repr(made))


def measured_order(pipeline: Pipeline, order: Program) -> Measures:
    """The measures of an order for which every rule holds, each task as early as it can be."""
    problem = pipeline.problem()
    schedule = left_shift(problem, order)
    _assert_holds(problem, schedule, str(pipeline))
    return measure(problem, schedule)


def _assert_holds(problem: Problem, schedule: Schedule, of: str) -> None:
    for verdict in (
        check(problem, schedule),
        check_communication(problem, lower(problem, schedule)),
    ):
        assert verdict.ok, f"{of}\n{verdict}"
