"""Visits: a rank runs one chunk for several microbatches in a row.

Where microbatches are enqueued and dequeued several at a time, a rank runs the forwards of one
chunk for the microbatches enqueued together (a forward visit) and the backwards of one chunk for
those dequeued together (a backward visit). With R enqueue and S dequeue operations and M chunks it
makes R*M forward visits, operation by operation and chunk 0 first, and S*M backward visits,
operation by operation and chunk M-1 first (PipeMesh section III-B). Forward and backward visits
may overlap in time; those of one direction come one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, product


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Visit ``number`` of a rank in one direction: ``stage`` for the microbatches ``first:end``."""

    rank: int
    number: int
    is_forward: bool
    operation: int
    stage: int
    first: int
    end: int


def visits(
    stage_ranks: tuple[int, ...], enqueue: tuple[int, ...], dequeue: tuple[int, ...]
) -> list[Visit]:
    """All visits of all ranks, by rank, forward ones first, in order.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    enqueue, dequeue
        The microbatches of each visit of a stage, forwards and backwards.
    """
    found = []
    for rank in range(max(stage_ranks) + 1):
        stages = [g for g, home in enumerate(stage_ranks) if home == rank]
        for is_forward, sizes in ((True, enqueue), (False, dequeue)):
            ends, chunks = [*accumulate(sizes)], stages if is_forward else stages[::-1]
            found += [
                Visit(
                    rank=rank,
                    number=number,
                    is_forward=is_forward,
                    operation=operation,
                    stage=stage,
                    first=ends[operation] - sizes[operation],
                    end=ends[operation],
                )
                for number, (operation, stage) in enumerate(product(range(len(sizes)), chunks))
            ]
    return found
