"""Longest paths and topological orders of edges that are known to have no cycle.

``theory.pipelines.timing`` answers None where edges have a cycle, which is an answer about a given
program. A pipeline's precedences, and the orders that a schedule has, have none: then a cycle is a
fault of the caller, and raises.
"""

from __future__ import annotations

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.timing import earliest_starts, in_order


class CyclicEdgesError(Exception):
    """Edges that were taken to have no cycle have one."""


def acyclic_starts(
    duration: Ints, before: Ints, after: Ints, lag: Ints, origin: Ints | None = None
) -> Ints:
    """Longest-path starts of tasks under precedences without a cycle.

    Parameters
    ----------
    duration
        Ticks of each task, shape (num_tasks,).
    before, after, lag
        One precedence a row: ``after`` starts ``lag`` ticks or more after ``before`` has ended.
    origin
        The least start of each task in ticks, shape (num_tasks,); 0 unless given.

    Returns
    -------
    Ints
        The earliest start of each task in ticks, shape (num_tasks,).

    Raises
    ------
    CyclicEdgesError
        Where the precedences have a cycle.
    """
    found = earliest_starts(duration, before, after, lag, origin)
    if found is None:
        raise CyclicEdgesError("precedences that were taken to be acyclic wait for themselves")
    return found


def acyclic_order(num_nodes: int, before: Ints, after: Ints) -> list[int]:
    """All nodes, none before one that it waits for.

    Parameters
    ----------
    num_nodes
        Nodes are numbered from 0 to ``num_nodes - 1``.
    before, after
        One edge a row: ``after`` waits for ``before``.

    Returns
    -------
    list[int]
        Every node once.

    Raises
    ------
    CyclicEdgesError
        Where the edges have a cycle.
    """
    found = in_order(num_nodes, before, after)
    if found is None:
        raise CyclicEdgesError("edges that were taken to be acyclic wait for themselves")
    return found
