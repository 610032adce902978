"""One engine on its own: what it finds and claims, for tests of models."""

from __future__ import annotations

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import Budget, EngineOutcome, engine
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.patience import in_time


def outcome_of(
    name: str, problem: Problem, limit: int | None = None, objective: Objective = "makespan"
) -> EngineOutcome:
    """The engine's answer without a hint on one thread."""
    encoding = Encoding(problem, lower_bounds(problem), objective=objective, limit=limit)
    return engine(name)(encoding, None, Budget(deadline=in_time(), threads=1))


def schedule_of(problem: Problem, outcome: EngineOutcome) -> Schedule | None:
    """The engine's schedule, if it found one."""
    return None if outcome.start is None else schedule_of_starts(problem, outcome.start)


def lenient(encoding: Encoding, start: Ints) -> int:
    """In place of ``checked_value``: the makespan, whatever else the checker says."""
    measured = check(encoding.problem, schedule_of_starts(encoding.problem, start)).measured
    assert measured is not None
    return measured.makespan


def optimum(
    name: str, problem: Problem, limit: int | None = None, objective: Objective = "makespan"
) -> int:
    """The engine's optimum, which its own bound meets and the checker confirms."""
    outcome = outcome_of(name, problem, limit, objective)
    schedule = schedule_of(problem, outcome)
    assert schedule is not None
    assert not outcome.is_refuted
    measured = accepted(problem, schedule)
    value = measured.makespan if objective == "makespan" else measured.span_idle
    assert value == outcome.bound
    return value
