"""What ``verify.spec`` says of problems and schedules as the tests have them."""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.finding import Finding
from bubbleproof.verify.spec import (
    Number,
    breaches,
    measures,
    plain_problem,
    plain_schedule,
)


def breaches_of(problem: Problem, schedule: Schedule) -> list[Finding]:
    """Every breach that the definition finds."""
    return breaches(plain_problem(problem), plain_schedule(schedule))


def broken_rules(problem: Problem, schedule: Schedule) -> set[str]:
    """The names of the rules that the schedule breaks; empty where it is right."""
    return {found.rule.name for found in breaches_of(problem, schedule)}


def plain_measures(problem: Problem, schedule: Schedule) -> dict[str, Number]:
    """The measures by their names."""
    return measures(plain_problem(problem), plain_schedule(schedule).rows)
