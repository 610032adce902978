"""Large m: solve a short instance whose middle repeats, then insert periods.

In a schedule of m0 identical microbatches the starts of every class (kind, stage, slice) may have a
band in which they repeat (``theory.orders.periods``). Whether what is lengthened there is a
schedule is for the checker to say, at the real m.

Short schedules come from ``solvers.lists.large``. P per R is at least the *period bound*: the work
of one microbatch on the busiest resource, and its whole lifecycle in a store divided by how many
may be there at once (the cyclic form of the memory edges).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bubbleproof.solvers.part_of_problem import part_of
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.orders.periods import Band, bands, longest, with_periods
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts
from bubbleproof.verify.certificates.index_order import IndexOrder

LONGEST_PERIOD = 8  # microbatches


def first_microbatches(problem: Problem, count: int) -> Problem:
    """The problem of the first ``count`` microbatches. Precondition: they are identical.

    Parameters
    ----------
    count
        How many, 1 or more.
    """
    kept = problem.actions.microbatch < count
    edges = problem.edges
    return part_of(problem, kept, kept[edges.before] & kept[edges.after], kept[problem.events.task])


def first_of_each(problem: Problem, order: IndexOrder) -> Problem:
    """The problem of the first microbatch of each group."""
    kept, edges = np.isin(np.arange(problem.num_tasks), list(order.row_of)), problem.edges
    return part_of(problem, kept, kept[edges.before] & kept[edges.after], kept[problem.events.task])


def period_bound(problem: Problem, order: IndexOrder) -> Fraction:
    """Ticks per microbatch that no endless schedule stays below."""
    one = first_microbatches(problem, 1)
    busiest = max(
        int(one.duration[one.occupancy.task[one.occupancy.resource == r]].sum())
        for r in range(len(one.resources))
    )
    bound = Fraction(busiest)
    number = {
        task: i for i, task in enumerate(np.flatnonzero(problem.actions.microbatch == 0).tolist())
    }
    for life in order.lifecycles:
        limit = order.limit(life)
        if limit is not None and limit > 0:
            stay = _stay(one, number[life.first], number[life.last])
            bound = max(bound, Fraction(stay, limit))
    return bound


def _stay(one: Problem, first: int, last: int) -> int:
    """Ticks from the start of ``first`` to the end of ``last``, at least."""
    origin = np.full(one.num_tasks, -(1 << 61))
    origin[first] = 0
    edges = one.edges
    reach = acyclic_starts(one.duration, edges.before, edges.after, edges.lag, origin)
    return max(0, int(reach[last] + one.duration[last]))


def find_band(starts: Ints) -> Band | None:
    """The band of shortest period in ``starts[c, j]`` (ticks), more than two periods long.

    Of several it is the longest.

    Parameters
    ----------
    starts
        Ticks, shape (classes, microbatches).
    """
    for count in range(1, min(LONGEST_PERIOD, starts.shape[1] // 3) + 1):
        best = longest(band for band in bands(starts, count) if band.last - band.first > 2 * count)
        if best is not None:
            return best
    return None


def stretched(starts: Ints, band: Band, microbatches: int) -> Ints:
    """Starts ``[c, j]`` for that many microbatches, periods inserted in the band.

    Parameters
    ----------
    starts
        Ticks, shape (classes, microbatches).
    microbatches
        How many the result has.

    Raises
    ------
    ValueError
        Where the difference is negative or no multiple of ``band.count``.
    """
    added, rest = divmod(microbatches - starts.shape[1], band.count)
    if added < 0 or rest:
        raise ValueError(
            f"{starts.shape[1]} microbatches can be lengthened by multiples of {band.count}, "
            f"got {microbatches}"
        )
    return with_periods(starts, band, added)
