"""ZB-V: no bubble at 1F1B's memory, with two chunks per rank placed as a V.

Rank r of p, by phases (0 is chunk 0 on stage r, 1 is chunk 1 on stage 2p-1-r):

1. 2(p-r)-1 times F0: until the first microbatch is back from the foot of the V;
2. r times F1 F0;
3. p-r times F1 I1 W1: now p microbatches have turned around on top;
4. F0 I0 W0 F1 I1 W1 until all F0 are done, then I0 W0 F1 I1 W1 until all F1 are;
5. r times I0 I1, p-r times I0 W0, and the weight gradients left over, those of chunk 1 first.

Source: Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism" (arXiv:2401.10241, the version
with ZB-V); the phases are read off its properties, which are the test: at tF = tI = tW and
m >= 2p-1 no rank idles between its first and last action (span_idle 0) and each holds 2p chunk
activations (p microbatches, as 1F1B does). Compared with PyTorch 2.13's ``ScheduleZBVZeroBubble``:
for p = 2..8 and m up to 3p+1 the phases are its order, action by action (a test). The authors'
generator (sail-sg/zero-bubble-pipeline-parallelism, zerobubble/scheduler/zbv.py) was read: it fits
the order to measured ticks, where these phases are for equal ones.
Legal range: any p, m; with m < 2p-1 the phases are those for 2p-1 microbatches, less those that are
not there, as in PyTorch. Peak: at most min(2p, 2m).
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import program_of_ranks
from bubbleproof.theory.families.v_shape import VShape
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

_F, _I, _W = int(Kind.F), int(Kind.I), int(Kind.W)
Step = tuple[int, int]  # (kind, chunk)
_TURN: list[Step] = [(_F, 1), (_I, 1), (_W, 1)]


class ZeroBubbleV(VShape):
    """Forwards of chunk 0 until they return on chunk 1, then F, I, W of either chunk in turn."""

    name = "zb-v"
    title = "ZB-V"
    source = "Zero Bubble Pipeline Parallelism (ICLR 2024, extended version), ZB-V"
    least = frozenset({"bubble"})

    def program(self, pipeline: Pipeline) -> Program:
        return phase_order(pipeline.num_ranks, pipeline.num_microbatches)


def phase_order(p: int, m: int) -> Program:
    """The phases for max(m, 2p-1) microbatches, less those that are not there.

    Parameters
    ----------
    p, m
        Ranks and microbatches.
    """
    rows = []
    for rank in range(p):
        kind, chunk, microbatch = numbered(rank_steps(p, max(m, 2 * p - 1), rank))
        stage = np.where(chunk == 0, rank, 2 * p - 1 - rank)
        there = microbatch < m
        rows.append((kind[there], stage[there], microbatch[there]))
    return program_of_ranks(rows)


def rank_steps(p: int, m: int, rank: int) -> list[Step]:
    """The steps of one rank in order. Precondition: m >= 2p-1.

    Parameters
    ----------
    p, m
        Ranks and microbatches, 2 p - 1 or more.
    rank
        From 0 to p - 1.
    """
    rest = p - rank
    return (
        [(_F, 0)] * (2 * rest - 1)
        + [(_F, 1), (_F, 0)] * rank
        + _TURN * rest
        + [(_F, 0), (_I, 0), (_W, 0), *_TURN] * (m - 2 * p + rank + 1)
        + [(_I, 0), (_W, 0), *_TURN] * (rest - 1)
        + [(_I, 0), (_I, 1)] * rank
        + [(_I, 0), (_W, 0)] * rest
        + [(_W, 1)] * rank
        + [(_W, 0)] * rank
    )


def numbered(steps: list[Step]) -> tuple[Ints, Ints, Ints]:
    """(kind, chunk, microbatch): the n-th step of a kind and chunk is that of microbatch n."""
    kind, chunk = np.array(steps, dtype=np.int64).T
    microbatch = np.zeros(len(steps), dtype=np.int64)
    for one in set(steps):
        rows = np.flatnonzero((kind == one[0]) & (chunk == one[1]))
        microbatch[rows] = np.arange(len(rows))
    return kind, chunk, microbatch
