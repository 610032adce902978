"""Periods: where starts repeat, and how more of them are inserted there.

``starts[c, j]`` is the start of microbatch j in class c (a kind of action on a stage, say). They
have a *band* of period (q, P) from a to b if starts[c, j + q] = starts[c, j] + P for all classes
and all j with a <= j and j + q < b. Then k more periods give

    S'(c, j) = S(c, j) for j < a + q        S'(c, j + iq) = S(c, j) + iP for a <= j < a + q, i <= k
    S'(c, j + kq) = S(c, j) + kP for j >= a + q.

Up to b the new starts are the old ones, from a + kq on they are the old ones moved by kP; so it is
all the same where in the band the periods are inserted, and the makespan grows by kP. Inputs, ranks
and memory are kept for every k where every microbatch before a + q ends before any from b - q on
begins: then nothing is near in the new schedule that is not near in the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """From microbatch ``first`` to ``last`` - 1 the starts repeat: + ``ticks`` per ``count``."""

    first: int
    last: int
    count: int
    ticks: int


def bands(starts: Ints, count: int) -> Iterator[Band]:
    """The bands of ``count`` microbatches to a period that no microbatch can be added to.

    Parameters
    ----------
    starts
        Ticks, shape (classes, microbatches).
    count
        Microbatches of a period, 1 or more.
    """
    steps = starts[:, count:] - starts[:, :-count]
    same = (steps == steps[:1]).all(axis=0)
    for first, last in _runs(same, steps[0]):
        yield Band(first=first, last=last + count, count=count, ticks=int(steps[0, first]))


def longest(found: Iterator[Band]) -> Band | None:
    """The longest of some bands, the first of several."""
    return max(found, key=lambda band: band.last - band.first, default=None)


def with_periods(starts: Ints, band: Band, added: int) -> Ints:
    """Starts ``[c, j]`` with so many periods more.

    Parameters
    ----------
    starts
        Ticks, shape (classes, microbatches).
    added
        How many periods more, 0 or more.
    """
    cut = band.first
    period = starts[:, cut : cut + band.count]
    shift = band.ticks * np.arange(added)
    inserted = (period[:, None, :] + shift[None, :, None]).reshape(len(starts), -1)
    tail = starts[:, cut:] + band.ticks * added
    return np.concatenate([starts[:, :cut], inserted, tail], axis=1)


def _runs(same: Bools, steps: Ints) -> Iterator[tuple[int, int]]:
    """Maximal ranges [first, last) in which ``same`` is true and ``steps`` constant."""
    first = None
    for j in range(len(same) + 1):
        if first is not None and (j == len(same) or not same[j] or steps[j] != steps[first]):
            yield first, j
            first = None
        if j < len(same) and first is None and same[j]:
            first = j
