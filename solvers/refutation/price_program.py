"""The linear program whose duals are prices: how much of a problem fits a horizon, cut up by ticks.

For one resource and the stores that its tasks change, over real numbers: N_i(t) says how many of a
class i of tasks have started at instant t or before, a class having one task a microbatch. With m
microbatches in a group, H ticks, and heads, tails and paths d_ij (ticks, from start to start) of
one microbatch alone,

    maximise  z
    subject to  N_i(t) = 0 for t < head_i,  N_i(t) = z m for t >= H - tail_i - duration_i,
        N_i(t - 1) <= N_i(t),
        N_j(t) <= N_i(t - d_ij),
        sum of N_i(t) - N_i(t - duration_i) <= 1,                    (the resource)
        sum of delta N_i(t - (duration_i, if at the end)) <= room.   (each store)

Every schedule within H is a solution with z = 1; so z < 1 says that there is none, and the duals of
the last two families are the prices that show it, up to rounding
(``verify.certificates.tick_prices`` decides). Only tasks of the resource and those that change its
stores are kept; all others are in the paths.

Of one microbatch of a group by itself paths are the longest over the microbatch's own precedences
(ticks). A head is from the start of the first computation to a task's start, a tail from its end to
the end of the last computation; a task that no paths put between computations is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bubbleproof.solvers.memory_rules import FINE
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest

Floats = NDArray[np.float64]
ShiftedTerm = tuple[int, float, int]  # task, factor, ticks by which it is late


class PriceProgram:
    """The program of one ``resource`` and ``stores`` (indices), all with a capacity.

    The variables are 0 or more, ``num_columns`` of them, the last of which is z. A row is at most
    its ``most``. Precondition: each microbatch alone fits the horizon.
    """

    def __init__(
        self,
        problem: Problem,
        parts: Sequence[LoneMicrobatch],
        resource: int,
        stores: Sequence[int],
        horizon: int,
    ) -> None:
        self.problem, self.horizon, self.stores = problem, horizon, stores
        self.ticks: list[int] = problem.duration.tolist()
        self.first = {task: head for part in parts for task, head in part.heads.items()}
        tails = {task: tail for part in parts for task, tail in part.tails.items()}
        self.last = {task: horizon - tails[task] - self.ticks[task] for task in self.first}
        self.count = {task: part.count for part in parts for task in part.kept}
        self.column_of: dict[int, int] = {}
        self.num_columns = 1
        for task, first in self.first.items():
            self.column_of[task] = self.num_columns - 1
            self.num_columns += self.last[task] - first
        self.units = [self._unit(store) for store in stores]
        self.most: list[Floats] = []
        self._found: list[tuple[Ints, Ints, Floats]] = []
        self._num_rows = 0
        for task, first in self.first.items():
            self._add(np.arange(first + 1, self.last[task] + 1), [(task, 1, 1), (task, -1, 0)])
        for before, after, ticks in (path for part in parts for path in part.paths):
            instants = np.arange(self.first[after], self.last[after] + 1)
            self._add(instants, [(after, 1, 0), (before, -1, ticks)])
        self._exclude(resource)
        for store, unit in zip(stores, self.units, strict=True):
            self._load(store, unit)

    @property
    def rows(self) -> tuple[Ints, Ints, Floats]:
        """(row, column, factor) of what is not 0, rows rising."""
        row, column, factor = (np.concatenate(part) for part in zip(*self._found, strict=True))
        return row, column, factor

    def prices(self, duals: Floats) -> list[Floats]:
        """The duals of the resource's ticks, then of each store's.

        Parameters
        ----------
        duals
            One for each row of the program.

        Returns
        -------
        list[Floats]
            A price for each tick of the horizon.
        """
        parts = 1 + len(self.stores)
        found = duals[self._num_rows - parts * self.horizon :].reshape(parts, self.horizon)
        return list(found / np.array([1, *self.units])[:, None])

    def _exclude(self, resource: int) -> None:
        """One task at a time on the resource."""
        homes = self.problem.occupancy
        users = set(homes.task[homes.resource == resource].tolist())
        terms: list[ShiftedTerm] = []
        for task in self.first:
            if task in users:
                terms += [(task, 1, 0), (task, -1, self.ticks[task])]
        self._add(np.arange(self.horizon), terms, most=1)

    def _unit(self, store: int) -> int:
        """In which amounts are told: of many digits HiGHS makes nothing."""
        events = self.problem.events
        most = int(np.abs(events.delta[events.store == store]).max(initial=1))
        return most if most > FINE else 1

    def _load(self, store: int, unit: int) -> None:
        """No more in a store than there is room for."""
        home, events = self.problem.stores[store], self.problem.events
        rows = np.flatnonzero(events.store == store)
        columns = events.task[rows], events.at_end[rows], events.delta[rows]
        terms = [
            (task, delta / unit, self.ticks[task] if at_end else 0)
            for task, at_end, delta in zip(*(column.tolist() for column in columns), strict=True)
            if task in self.first
        ]
        self._add(np.arange(self.horizon), terms, most=((home.capacity or 0) - home.base) / unit)

    def _add(self, instants: Ints, terms: Sequence[ShiftedTerm], most: float = 0) -> None:
        """A row an instant t: the sum of factor N_task(t - late) is at most ``most``."""
        keys, factors = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for task, factor, late in terms:
            at = instants - late
            begun = np.flatnonzero(at >= self.first[task])
            is_over = at[begun] >= self.last[task]
            column = self.column_of[task] + at[begun] - self.first[task]
            column[is_over] = self.num_columns - 1
            keys.append((begun + self._num_rows) * self.num_columns + column)
            factors.append(np.where(is_over, factor * self.count[task], factor).astype(float))
        found, where = np.unique(np.concatenate(keys), return_inverse=True)
        sums = np.bincount(where.ravel(), weights=np.concatenate(factors), minlength=len(found))
        found, sums = found[sums != 0], sums[sums != 0]
        self._found.append((found // self.num_columns, found % self.num_columns, sums))
        self.most.append(np.full(len(instants), float(most)))
        self._num_rows += len(instants)


PartEdge = tuple[int, int, int]  # before, after, lag


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneMicrobatch:
    """The tasks ``kept`` of a microbatch, of which its group has ``count``.

    ``paths``: (task, later task, ticks from start to start), those that others do not imply;
    ``longest``: the ticks of the longest path through one of them.
    """

    count: int
    kept: tuple[int, ...]
    heads: dict[int, int]
    tails: dict[int, int]
    paths: tuple[PartEdge, ...]
    longest: int


def lone_microbatch(
    problem: Problem, tasks: Ints, count: int, wanted: set[int], place: Ints
) -> LoneMicrobatch:
    """The microbatch with these ``tasks``; ``place`` orders all tasks by their precedences.

    Parameters
    ----------
    tasks
        Numbers of tasks of the problem.
    count
        How many microbatches are like it, 1 or more.
    wanted
        The tasks to keep, of those on a path between computations.
    place
        Of each task of the problem, rising along precedences.
    """
    edges, ticks = problem.edges, problem.duration.tolist()
    inside = np.isin(edges.before, tasks) & np.isin(edges.after, tasks)
    columns = (column[inside].tolist() for column in (edges.before, edges.after, edges.lag))
    rows = list(zip(*columns, strict=True))
    rows.sort(key=lambda row: int(place[row[0]]))
    back = [(after, before, lag) for before, after, lag in rows]
    back.sort(key=lambda row: -int(place[row[0]]))
    least = [0 if rank >= 0 else NO_PATH for rank in problem.rank_of_task.tolist()]
    heads, tails = longest(rows, ticks, least), longest(back, ticks, least)
    ordered = tasks[np.argsort(place[tasks])].tolist()
    kept = [t for t in ordered if t in wanted and heads[t] >= 0 and tails[t] >= 0]
    return LoneMicrobatch(
        count=count,
        kept=tuple(kept),
        heads={task: heads[task] for task in kept},
        tails={task: tails[task] for task in kept},
        paths=tuple(_paths(rows, ticks, kept)),
        longest=max((heads[t] + ticks[t] + tails[t] for t in kept), default=0),
    )


def _paths(rows: Sequence[PartEdge], ticks: list[int], kept: list[int]) -> list[PartEdge]:
    """The longest paths between kept tasks that no third one is on."""
    far: dict[int, list[int]] = {}
    for origin in kept:
        nothing = [NO_PATH] * len(ticks)
        nothing[origin] = 0
        far[origin] = longest(rows, ticks, nothing)
    return [
        (task, later, far[task][later])
        for place, task in enumerate(kept)
        for later in kept[place + 1 :]
        if far[task][later] > NO_PATH >> 1
        and not any(
            far[task][other] + far[other][later] >= far[task][later]
            for other in kept
            if other not in (task, later)
        )
    ]
