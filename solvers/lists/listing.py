"""All programs of list scheduling, each with the name of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.solvers.lists.merging import merged_programs
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

LISTED = 1e-5  # units of work for each task that is started


def listed_programs(
    problem: Problem, bounds: Bounds, target: int, is_enough: Callable[[], bool]
) -> Iterator[tuple[str, Program]]:
    """By priorities, then along fixed orders within the ``target`` (ticks).

    Parameters
    ----------
    target
        Ticks, such as a lower bound.
    is_enough
        Asked before each run.

    Returns
    -------
    Iterator[tuple[str, Program]]
        The name of the method and the program.
    """
    for program in greedy_programs(problem, bounds, is_enough):
        yield "greedy", program
    for program in merged_programs(problem, target, is_enough):
        yield "merging", program
