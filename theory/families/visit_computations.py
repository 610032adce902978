"""The computations of a visit, in the order in which its rank runs them."""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.sharding import ADDERS, BACKWARDS, FORWARDS, READERS, Visit


class Computations:
    """The computations of a problem by what they do with a stage's parameters and gradient."""

    def __init__(self, problem: Problem) -> None:
        actions = problem.actions
        self._count = 1 + int(actions.microbatch.max())
        self._by: dict[tuple[Kind, ...], tuple[Ints, Ints]] = {}
        for kinds in (FORWARDS, BACKWARDS, READERS, ADDERS):
            task = np.flatnonzero(actions.is_kind(*kinds))
            slices = actions.slice[task] if kinds == FORWARDS else -actions.slice[task]
            key = actions.stage[task] * self._count + actions.microbatch[task]
            order = np.lexsort((task, slices, key))
            self._by[kinds] = key[order], task[order]

    def of(self, visit: Visit, backward: tuple[Kind, ...] = BACKWARDS) -> Ints:
        """The Fs of a forward visit, or what ``backward`` names of a backward one.

        By microbatch; forwards by slice, backwards from the last slice on.
        """
        keys, tasks = self._by[FORWARDS if visit.is_forward else backward]
        ends = visit.stage * self._count + np.array([visit.first, visit.end])
        first, end = np.searchsorted(keys, ends)
        return tasks[first:end]
