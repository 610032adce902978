"""The door to solving: any problem, any objective, one ``Result``.

Most instances need no engine: a greedy or published schedule meets a bound. What makes the others
fast is the modelling (``encoding``, ``bounds``), not the engine. See ``search`` for the steps and
``objectives`` for what is made of several searches.
"""

from __future__ import annotations

from collections.abc import Iterable

from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.objectives import least_peak
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.solvers.search import MOST_GLANCED, Search
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program


def solve(
    problem: Problem,
    options: SolveOptions | None = None,
    starts: Iterable[tuple[str, Program]] = (),
    *,
    demands: Demands | None = None,
    whole: Budget | None = None,
) -> Result:
    """The best schedule found, with a checked bound.

    ``starts`` are named programs to begin from (published orders), of few tasks each asked for when
    its turn comes; those that do not fit are passed over. ``demands`` are kept by every schedule
    that is found. ``whole`` is the part of another search's budget that this one has. A time-out is
    never INFEASIBLE.
    Raises ``ValueError`` for a problem that computes nothing.
    """
    options = options or SolveOptions()
    if (problem.rank_of_task == NONE).all():
        raise ValueError("a problem to solve needs at least one task on a rank, got none")
    if problem.num_tasks > MOST_GLANCED:  # to make them all is no part of the time limit
        starts = tuple(starts)
    if options.objective == "makespan-then-peak" or options.objective == "peak":
        return least_peak(problem, options, starts, demands, whole)
    search = Search(problem, options, options.objective, demands=demands, whole=whole)
    return search.run(starts)
