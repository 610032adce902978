"""Microbatches of which a problem says the same, so that one of each kind is looked at by name.

``required_step`` states what a microbatch requires by itself, naming no other one, and its number
counts in two places: which half of a bidirectional pipeline it is in, and whether its backward is
split. With choices that treat microbatches of a stage differently all are looked at. The same of
the problem is not believed but compared, row by row in columns.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline

_MICROBATCH = ((1 << 24) - 1) << 18  # its bits in the key of an action


def one_of_each_kind(pipeline: Pipeline, problem: Problem) -> list[int] | None:
    """The least microbatch of each kind; None where the rest are not shown to be like them.

    Parameters
    ----------
    pipeline, problem
        What is required, and what is said of it.

    Returns
    -------
    list[int] | None
        Numbers from 0 to m - 1, in order.
    """
    actions, edges, events = problem.actions, problem.edges, problem.events
    number, size = actions.microbatch, pipeline.num_microbatches
    if not pipeline.choices.is_of_stages or (actions.partner_stage != NONE).any():
        return None
    if ((number < 0) | (number >= size)).any():
        return None
    if (number[edges.before] != number[edges.after]).any():
        return None
    what, used = actions.keys() & ~_MICROBATCH, problem.occupancy
    first = _first_alike(pipeline)
    tables: tuple[tuple[Ints | Bools, ...], ...] = (
        (number, what, problem.duration),
        (number[used.task], what[used.task], used.resource),
        (number[edges.before], what[edges.before], what[edges.after], edges.lag),
        (number[events.task], what[events.task], events.at_end, events.store, events.delta),
    )
    if not all(_repeats(table[0], table[1:], first) for table in tables):
        return None
    return sorted(set(first.tolist()))


def _first_alike(pipeline: Pipeline) -> Ints:
    """Of each microbatch the least that the pipeline treats as it."""
    size, flags = pipeline.num_microbatches, pipeline.split_backward
    seen: dict[object, int] = {}
    return np.array(
        [
            seen.setdefault(
                (
                    2 * number >= size,
                    flags if isinstance(flags, bool) else tuple(row[number] for row in flags),
                ),
                number,
            )
            for number in range(size)
        ]
    )


def _repeats(number: Ints | Bools, columns: tuple[Ints | Bools, ...], first: Ints) -> bool:
    """Whether the rows of each microbatch are those of its first alike, but for the number."""
    order = np.lexsort((*columns[::-1], number))
    count = np.bincount(number, minlength=len(first))
    if (count != count[first]).any():
        return False
    begin, of = np.cumsum(count) - count, number[order]
    like = order[np.arange(len(order)) - begin[of] + begin[first[of]]]
    return all(bool((column[order] == column[like]).all()) for column in columns)
