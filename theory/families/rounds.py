"""Rounds: T-Pipe's periodic orders for v chunks per rank, of which the k shallowest are recomputed.

Symbols: p ranks, v chunks per rank (0 shallow to v-1 deep), k recomputed chunks 0..k-1 (0: none),
i = p-1-r hops from rank r to the last. A unit is a forward of one chunk; a backward takes 2 and a
recomputation 1.

Every rank repeats one *round* per microbatch: v cells, each a forward, the recomputation where the
cell's backward has one, and a backward. A cell lasts 3 units, 4 with a recomputation, a round
3v + k (T-Pipe Appendix A: cycles of 6 T_unit; Appendix C: of 7). Cells are numbered through all
rounds; a rank runs them 2 units later than the rank behind it, so that

- the backwards of a chunk follow each other from rank to rank without a gap;
- its forwards, which go the other way, take one cell more on each rank: cell n on the last rank is
  cell n - i on rank p-1-i. They follow without a gap over cells of 3 units and wait 1 unit over
  one of 4 (Figure 6(d): block-wise recomputation puts intervals into the forwards).

No two tasks of a rank overlap if the forwards of the chunks, and the backwards, lie in cells whose
numbers differ modulo v. Chunk v-1 runs its forward and backward on the last rank in one cell. From
there every chunk gets the next free cell that its dependencies allow: backwards from deep to
shallow upwards, forwards from deep to shallow downwards (section 4.1: "eliminating" the intervals
that accumulate). Without recomputation that is the least there is for every chunk at once: with
D = ceil(p/3) and D' = ceil(2p/3), chunk c is c D + floor(c g / v) cells behind chunk 0 in the
forwards and (v-1-c) D' + floor((v-1-c) g' / v) behind chunk v-1 in the backwards, g = gcd(D, v) and
g' = gcd(D', v): of v/g steps of D cells the last meets a number that is taken.

The paper draws two chunks and evaluates three and four without a drawing (Figures 14, 15b). What is
ours: which cells of the round are those of recomputed chunks. Where there is a choice (v >= 3,
k < v - 1) it falls on the least sum of the lives of what is kept, then of all, then on the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

import numpy as np

from bubbleproof.theory.families.base import program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

MOST_PATTERNS = 5000  # ways to lay recomputed cells that are compared; all of them up to 13 chunks
Starts = dict[tuple[Kind, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells of a round, and which of them hold a recomputation; their number is v."""

    recomputed: tuple[bool, ...]

    @property
    def period(self) -> int:
        """Units of a round."""
        return 3 * len(self.recomputed) + sum(self.recomputed)

    def again(self, cell: int) -> bool:
        """Whether a cell holds a recomputation.

        Parameters
        ----------
        cell
            The cell's number, which may be negative.
        """
        return self.recomputed[cell % len(self.recomputed)]

    def forward(self, cell: int) -> int:
        """Start of a cell's forward on the last rank; cell 0 begins at 0.

        Parameters
        ----------
        cell
            The cell's number, which may be negative.

        Returns
        -------
        int
            A moment, in units of one forward of a chunk.
        """
        rounds, within = divmod(cell, len(self.recomputed))
        return rounds * self.period + 3 * within + sum(self.recomputed[:within])

    def backward(self, cell: int) -> int:
        """Start of a cell's backward on the last rank.

        Parameters
        ----------
        cell
            The cell's number, which may be negative.

        Returns
        -------
        int
            A moment, in units of one forward of a chunk.
        """
        return self.forward(cell) + 1 + self.again(cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLayout:
    """The cells in which the chunks of microbatch 0 run on the last rank."""

    cells: Cells
    forwards: tuple[int, ...]
    backwards: tuple[int, ...]

    def starts(self, hops: int) -> Starts:
        """Starts by (kind, chunk), ``hops`` ranks before the last.

        Parameters
        ----------
        hops
            Ranks between this one and the last, 0 or more.
        """
        found: Starts = {}
        for chunk, (forth, back) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            found[Kind.F, chunk] = self.cells.forward(forth - hops) + 2 * hops
            found[Kind.B, chunk] = self.cells.backward(back) + 2 * hops
            if self.cells.again(back):
                found[Kind.R, chunk] = found[Kind.B, chunk] - 1
        return found

    def lives(self, ranks: int) -> tuple[int, int]:
        """Units from forward to backward on rank 0: the chunks that are kept, and all.

        Parameters
        ----------
        ranks
            p.
        """
        found = self.starts(ranks - 1)
        lives = [found[Kind.B, c] + 2 - found[Kind.F, c] for c in range(len(self.forwards))]
        return sum(lives[sum(self.cells.recomputed) :]), sum(lives)


def round_starts(p: int, rank: int, *, chunks: int, recomputed: int = 0) -> Starts:
    """Starts of microbatch 0 by (kind, chunk); each later one comes ``3 chunks + recomputed`` units
    after. The first forward of rank 0 is at 0. Preconditions: 0 <= recomputed <= chunks.

    Parameters
    ----------
    p
        Ranks.
    rank
        From 0 to p - 1.
    chunks
        Those of a rank.
    recomputed
        How many of them are recomputed.
    """
    layout = _layout(p, chunks, recomputed)
    first = layout.starts(p - 1)[Kind.F, 0]
    return {key: start - first for key, start in layout.starts(p - 1 - rank).items()}


def round_program(pipeline: Pipeline, recomputed: int = 0) -> Program:
    """Each rank's tasks in the order of their starts, one round per microbatch.

    Parameters
    ----------
    recomputed
        Chunks of a rank that are recomputed, the first ones.
    """
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    index, rows = np.arange(m), []
    for rank in range(p):
        found = round_starts(p, rank, chunks=v, recomputed=recomputed)
        start = np.concatenate([first + (3 * v + recomputed) * index for first in found.values()])
        kind = np.repeat([int(kind) for kind, _ in found], m)
        stage = np.repeat([rank + p * chunk for _, chunk in found], m)
        order = np.argsort(start, kind="stable")
        rows.append((kind[order], stage[order], np.tile(index, len(found))[order]))
    return program_of_ranks(rows)


@lru_cache(maxsize=256)
def _layout(p: int, chunks: int, recomputed: int) -> RoundLayout:
    return min(
        (_laid(p, recomputed, cells) for cells in _patterns(chunks, recomputed)),
        key=lambda layout: (layout.lives(p), layout.cells.recomputed[::-1]),
    )


def _patterns(chunks: int, recomputed: int) -> Iterator[Cells]:
    """The rounds of so many recomputed cells; cell 0 is the deepest chunk's, recomputed last."""
    first = 0 if recomputed == chunks else 1
    for chosen in islice(combinations(range(first, chunks), recomputed), MOST_PATTERNS):
        yield Cells(recomputed=tuple(cell in chosen for cell in range(chunks)))


def _laid(p: int, recomputed: int, cells: Cells) -> RoundLayout:
    """Every chunk in the next free cell that its dependencies allow, from the deepest on."""
    v = len(cells.recomputed)
    back, forth = 0, 0
    backwards, forwards = [back], [forth]
    for chunk in reversed(range(v - 1)):
        ready = cells.backward(back) + 2 * p  # the deeper chunk is through all ranks
        taken = {cell % v for cell in backwards}
        while (
            back % v in taken
            or cells.again(back) != (chunk < recomputed)
            or cells.backward(back) < ready
        ):
            back += 1
        backwards.append(back)
        needed = cells.forward(forth - (p - 1)) + 2 * (p - 1)  # by the deeper chunk's first rank
        taken = {cell % v for cell in forwards}
        while forth % v in taken or cells.forward(forth) + 1 > needed:
            forth -= 1
        forwards.append(forth)
    return RoundLayout(
        cells=cells, forwards=tuple(forwards[::-1]), backwards=tuple(backwards[::-1])
    )
