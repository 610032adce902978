"""T-Pipe: two chunks per rank, backwards as early as they can be, at most about 3/4 of A.

Every rank repeats the same round: with forwards of 1 unit and backwards of 2, a round of 6 units
holds the forward and the backward of the shallow chunk 1 (stages 0..p-1) and of the deep chunk 2
(stages p..2p-1). In units, microbatch j on rank r starts its

    forward 1    6j + r
    forward 2    6j + r + 3 + 6 x                        x = max(0, ceil((p-3)/6))
    backward 2   6j + 3 + 6 x + p + 2(p-1-r)
    backward 1   backward 2 + 3 + 6 y                    y = max(0, ceil((2p-3)/6))

(T-Pipe Appendix A, Figure 16: chunk 2 follows chunk 1 by x rounds forwards, chunk 1 follows chunk 2
by y rounds backwards.) These starts do not overlap on any rank and keep all dependencies, so their
order per rank is free of deadlock whatever the durations are; ``program`` gives the order, and the
schedule is left-shifted from it. Where tB = 2 tF the left shift closes the gaps that the rounds
leave in warm-up and cool-down (3 + 6x - p and 3 + 6y - 2p): the makespan is 6(m+p-1) tF (swept),
where the starts above end at 6(m+x+y) + 3p, which is 3, 6 or 9 units later. At other durations the
same order has gaps in every round: first at p=3, m=2 it takes longer than 2(m+p-1)(tF+tB).

Source: T-Pipe ("Chronos-aware pipeline parallelism") section 4.1, Appendix A. Legal range: any p
and m; v = 2 only. The peak depends on the order alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

Starts = Callable[[int, int], dict[tuple[Kind, int], int]]  # of p and the rank


class TwoChunks(Family):
    """A family of two chunks per rank, shallow and deep, whose order follows from start times."""

    options = frozenset({"v"})
    default_chunks = 2
    has_two_chunks = True


class TPipe(TwoChunks):
    """Rounds of forward 1, forward 2, backward 2 and backward 1 on every rank."""

    name = "tpipe"
    title = "T-Pipe"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.1, Appendix A"

    def program(self, pipeline: Pipeline) -> Program:
        return periodic_program(pipeline, tpipe_starts, 6)


def tpipe_starts(p: int, rank: int) -> dict[tuple[Kind, int], int]:
    """Start of microbatch 0 by (kind, chunk), in units; microbatch j comes 6j units later."""
    second = 3 + 6 * _rounds(p - 3)
    deep_back = second + p + 2 * (p - 1 - rank)
    return {
        (Kind.F, 0): rank,
        (Kind.F, 1): rank + second,
        (Kind.B, 1): deep_back,
        (Kind.B, 0): deep_back + 3 + 6 * _rounds(2 * p - 3),
    }


def _rounds(units: int) -> int:
    """The least number of rounds of 6 units that last as long."""
    return max(0, -(-units // 6))


def periodic_program(pipeline: Pipeline, starts: Starts, period: int) -> Program:
    """Each rank's tasks in the order of their starts, one ``period`` per microbatch."""
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    index, rows = np.arange(m), []
    for rank in range(p):
        found = starts(p, rank)
        start = np.concatenate([first + period * index for first in found.values()])
        kind = np.repeat([int(kind) for kind, _ in found], m)
        stage = np.repeat([rank + p * chunk for _, chunk in found], m)
        order = np.argsort(start, kind="stable")
        rows.append((kind[order], stage[order], np.tile(index, len(found))[order]))
    return program_of_ranks(rows)
