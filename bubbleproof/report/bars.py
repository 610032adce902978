"""Bars: one per action and resource.

A bar lies on a *row* of the picture (a resource that is shown) from ``start`` to ``end`` (ticks,
end exclusive). An ``OVERLAP_F_B`` task becomes two bars of half height, its F above its B. Bars too
many or too narrow to be drawn one by one become cells (``timeline``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem

COLUMNS = ("row", "start", "end", "chunk", "lane", "task")


class BarLane(IntEnum):
    """Which part of its row's height a bar fills."""

    WHOLE = 0
    UPPER = 1
    LOWER = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars:
    """Columns of one length; ``actions`` names each bar, with stage ``NONE`` where bars are cells.

    ``row`` is a row of the picture, ``start`` and ``end`` are ticks, ``chunk`` is the position of
    the bar's stage among the stages of its rank, ``task`` its task (``NONE`` of a cell).
    """

    row: Ints
    start: Ints
    end: Ints
    chunk: Ints
    lane: Ints
    task: Ints
    actions: ActionTable

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints | Bools) -> Bars:
        """The chosen bars (indices or a mask)."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Bars(**columns, actions=self.actions.take(rows))

    @classmethod
    def concatenate(cls, parts: Sequence[Bars]) -> Bars:
        """The bars of all parts."""
        columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in COLUMNS}
        return cls(**columns, actions=ActionTable.concatenate([part.actions for part in parts]))

    def by_kind(self) -> Iterator[tuple[Kind, int, Bars]]:
        """(kind, chunk, its bars) for each kind and chunk, in order."""
        num_chunks = int(self.chunk.max(initial=0)) + 1
        sort = self.actions.kind * num_chunks + self.chunk
        for which in np.unique(sort).tolist():
            kind, chunk = divmod(which, num_chunks)
            yield Kind(kind), chunk, self.take(np.flatnonzero(sort == which))

    def numbers(self) -> list[str]:
        """What stands inside each bar: the microbatch, its slice ``j.k`` and its part ``j#n``."""
        actions, sliced = self.actions, self.actions.is_sliced
        columns = (actions.microbatch, actions.slice, actions.part)
        return [
            "" if j == NONE else str(j) + f".{k}" * sliced + f"#{part}" * (part != NONE)
            for j, k, part in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def in_window(self, window: tuple[int, int]) -> Bools:
        """Mask of the bars that show between the two ticks."""
        first, last = window
        return (self.start < last) & ((self.end > first) | (self.start >= first))


def bars_of(problem: Problem, task: Ints, resource: Ints, start: Ints) -> Bars:
    """A bar per row (task, resource, start in ticks); ``row`` is the resource."""
    return Bars(
        row=resource,
        start=start,
        end=start + problem.duration[task],
        chunk=_chunks(problem, task, resource),
        lane=np.full(len(task), int(BarLane.WHOLE)),
        task=task,
        actions=problem.actions.take(task),
    )


def _chunks(problem: Problem, task: Ints, resource: Ints) -> Ints:
    """The position of each bar's stage among the stages of its rank; 0 on links and engines."""
    stages, occupancy = problem.actions.stage, problem.occupancy
    width = int(stages.max(initial=0)) + 1
    held = np.unique(occupancy.resource * width + stages[occupancy.task])
    chunk = np.searchsorted(held, resource * width + stages[task])
    chunk -= np.searchsorted(held, resource * width)
    return np.where(resource < problem.num_ranks, chunk, 0).astype(np.int64)


def split_overlaps(bars: Bars) -> Bars:
    """Each ``OVERLAP_F_B`` bar as an F in the upper lane and its B in the lower."""
    pair = bars.actions.is_kind(Kind.OVERLAP_F_B)
    if not pair.any():
        return bars
    alone, pairs = bars.take(~pair), bars.take(pair)
    actions, ones = pairs.actions, np.ones(len(pairs), dtype=np.int64)
    forward = ActionTable.of(int(Kind.F), actions.stage, actions.microbatch, actions.slice)
    backward = ActionTable.of(
        int(Kind.B), actions.partner_stage, actions.partner_microbatch, actions.slice
    )
    upper = replace(pairs, lane=ones * BarLane.UPPER, actions=forward)
    chunk = _partner_chunks(bars, pairs)
    lower = replace(pairs, lane=ones * BarLane.LOWER, actions=backward, chunk=chunk)
    return Bars.concatenate([alone, upper, lower])


def _partner_chunks(bars: Bars, pairs: Bars) -> Ints:
    """The chunk of each pair's B: that of its stage elsewhere on the row, else the pair's own."""
    homes = zip(bars.row.tolist(), bars.actions.stage.tolist(), strict=True)
    known = dict(zip(homes, bars.chunk.tolist(), strict=True))
    wanted = (pairs.row, pairs.actions.partner_stage, pairs.chunk)
    rows = zip(*(column.tolist() for column in wanted), strict=True)
    return np.array([known.get((row, stage), own) for row, stage, own in rows], dtype=np.int64)
