"""A schedule in one line: how long, how idle, against 1F1B, and against the bound on all schedules.

>>> from bubbleproof.theory.families import member
>>> drawn = member("zb-h1", p=4, m=8)
>>> headline(drawn.problem, drawn.schedule, pipeline=drawn.pipeline)
'27 ticks, 11.1 % idle; 18.2 % below 1F1B; at its bound: no schedule is shorter.'
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.formats.comparison import comparison_pipeline
from bubbleproof.report.amounts import percent, time
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.standstill import Standstill

MOST_TASKS = 150_000  # of which the bound takes a second or two


def headline(
    problem: Problem,
    schedule: Schedule,
    *,
    pipeline: Pipeline | None = None,
    stopped: Standstill | None = None,
) -> str:
    """The line. What is not known is left out: 1F1B without a ``pipeline``, a bound of many tasks.

    1F1B is that of the same work (``comparison_pipeline``); the bound needs no search, so a
    schedule that is above it may be optimal still.
    """
    if stopped is not None:
        return f"Stops after {time(stopped.at, problem.unit)}."
    found = measure(problem, schedule)
    parts = [f"{time(found.makespan, problem.unit)}, {percent(found.idle_ratio)} idle"]
    if problem.num_tasks <= MOST_TASKS:
        parts += [
            *_against_1f1b(pipeline, found.makespan),
            *_against_bound(problem, found.makespan),
        ]
    return f"{'; '.join(parts)}."


def _against_1f1b(pipeline: Pipeline | None, makespan: int) -> list[str]:
    """Empty where 1F1B has no schedule of the same work."""
    chosen = family("1f1b")
    try:
        if pipeline is None:
            return []
        other = comparison_pipeline(pipeline, chosen)
        problem = other.problem()
        known = measure(problem, chosen.schedule(other, problem)).makespan
    except ValueError:
        return []
    if not known or known == makespan:
        return ["as long as 1F1B"][: bool(known)]
    word = "below" if makespan < known else "above"
    return [f"{percent(abs(Fraction(makespan - known, known)))} {word} 1F1B"]


def _against_bound(problem: Problem, makespan: int) -> list[str]:
    if not (problem.rank_of_task >= 0).any():
        return []
    bounds = lower_bounds(problem)
    above = makespan - bounds.best.bound
    if bounds.is_cyclic or above < 0:
        return []
    if above:
        return [f"{time(above, problem.unit)} above its bound"]
    return ["at its bound: no schedule is shorter"]
