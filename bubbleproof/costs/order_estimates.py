"""What 1F1B takes and needs on a deployment, by formulas, before any schedule is made.

Ranks r = 0 to p - 1 take T_r a microbatch and hold W_r bytes of state; a microbatch is kept as a_r
bytes in a rank's layers. In steady state of m microbatches and v chunks a rank, the slowest rank
computes all the time, before it the pipeline is filled and behind it drained:

    iteration ~ m max T_r + (p - 1) ((mean T_r) / v + 2 latency) + the step's end,
    bytes of rank r ~ W_r + n_r a_r / v,

or, where messages are slow, m v / n_0 times what one microbatch takes down and up all stages: rank
0 keeps n_0 / v at once; n_r are passes of a chunk. The head holds one
microbatch's bytes of its own. Chunks of 1 and of the most are looked at: a search begins with what
these promise, and no answer rests on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

MOST_CHUNKS = 8


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OrderEstimate:
    """The better first: one that fits, then the shorter ``iteration`` (ticks), then the least
    ``needed`` (bytes of a card)."""

    is_large: bool
    iteration: int
    needed: int
    chunks: int


@lru_cache(maxsize=1 << 14)
def order_estimate(numbers: ClusterLayers, *, microbatches: int) -> OrderEstimate:
    """The best of its cuts and chunks.

    Parameters
    ----------
    microbatches
        m, of one replica's step.
    """
    found = []
    for cut in numbers.cuts:
        most = max(1, min(MOST_CHUNKS, numbers.layers.number // len(cut)))
        chunks = {1, most} if 1 < len(cut) <= microbatches else {1}
        found += [_of(numbers, cut, microbatches, each) for each in chunks]
    return min(found)


def _of(numbers: ClusterLayers, cut: Cut, microbatches: int, chunks: int) -> OrderEstimate:
    layers, ranks, latency = numbers.layers, len(cut), numbers.latency
    columns = (layers.of_stages(name, cut) for name in ("ticks", "static", "activation"))
    ticks, static, kept_once = columns
    kept = [in_flight_passes(ranks, rank, microbatches, chunks) for rank in range(ranks)]
    around = sum(ticks) + 2 * (ranks * chunks - 1) * latency  # of one microbatch, down and up
    first = sum(ticks) // (ranks * chunks) + 2 * latency
    busy = microbatches * max(ticks) + (ranks - 1) * first
    waited = microbatches * around * chunks // kept[0]
    kept_once[-1] -= (end := layers.head.activation)
    held = [
        state + passes * each // chunks
        for state, passes, each in zip(static, kept, kept_once, strict=True)
    ]
    held[-1] += end
    needed = max(held)
    return OrderEstimate(
        is_large=needed > numbers.capacity,
        iteration=max(busy, waited) + numbers.step_end,
        needed=needed + numbers.beside,
        chunks=chunks,
    )


def in_flight_passes(ranks: int, rank: int, microbatches: int, chunks: int = 1) -> int:
    """Forwards of a rank whose backwards have not ended, at most.

    Parameters
    ----------
    ranks
        p.
    rank
        From 0 to p - 1.
    microbatches
        m.
    chunks
        v; the order is 1F1B for 1, else interleaved 1F1B.
    """
    if chunks == 1:
        return min(ranks - rank, microbatches)
    return min((chunks - 1) * ranks + 2 * (ranks - rank - 1) + 1, microbatches * chunks)
