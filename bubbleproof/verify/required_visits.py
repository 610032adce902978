"""What the collectives of a sharded pipeline require, by name (PipeMesh sections II-A and III-B).

A rank visits its chunks: forwards for the microbatches enqueued together, backwards for those
dequeued together. A visit may gather the parameters before it (UNSHARD), free them after it
(RESHARD) and reduce its gradients after it (REDUCE_GRAD), by the level of ZeRO:

UNSHARD      before a stage's first forward visit; at level 3 before every visit. The first backward
             visit of a rank copies the forward's parameters, in 0 ticks. What is not freed serves
             all visits of the stage.
RESHARD      at level 3 after every visit.
REDUCE_GRAD  after a stage's last backward visit; from level 2 on after every one. It sums what no
             other reduces. The first backward of its visit, which the others wait for, acquires the
             gradient.

One buffer computes while the other communicates: UNSHARD of visit n+2 waits for RESHARD of visit n,
and the backwards of visit n+2 for REDUCE_GRAD of visit n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bubbleproof.theory.pipelines.sharded import ShardedPipeline
from bubbleproof.verify.required_table import Required, action_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """Visit ``number`` of a rank in one direction; ``slice`` tells a stage's collectives apart."""

    kind: str
    number: int
    slice: int
    stage: int
    microbatches: range
    is_first: bool
    is_last: bool

    @property
    def tasks(self) -> list[str]:
        return [action_name(self.stage, self.kind, microbatch) for microbatch in self.microbatches]

    def collective(self, kind: str) -> str:
        return action_name(self.stage, kind, None, self.slice)


def require_collectives(
    found: Required, pipeline: ShardedPipeline, rank_of: Callable[[int], int]
) -> None:
    """Add the collectives of every rank's visits."""
    for rank in range(pipeline.num_ranks):
        stages = [g for g in range(pipeline.num_stages) if rank_of(g) == rank]
        forwards = list(_visits("F", stages, pipeline.enqueue, 0))
        backwards = list(_visits("B", stages[::-1], pipeline.dequeue, len(pipeline.enqueue)))
        for listed in (forwards, backwards):
            for visit in listed:
                in_two = [other for other in listed if other.number == visit.number + 2]
                alike = [name for v in listed if v.stage == visit.stage for name in v.tasks]
                _parameters(found, pipeline, rank, visit, alike, in_two)
                if visit.kind == "B":
                    _gradients(found, pipeline, rank, visit, alike, in_two)


def _visits(kind: str, stages: list[int], sizes: tuple[int, ...], slices: int) -> Iterator[_Visit]:
    """Operation by operation, and of each chunk by chunk."""
    number = first = 0
    for operation, size in enumerate(sizes):
        for stage in stages:
            yield _Visit(
                kind=kind,
                number=number,
                slice=slices + operation,
                stage=stage,
                microbatches=range(first, first + size),
                is_first=operation == 0,
                is_last=operation == len(sizes) - 1,
            )
            number += 1
        first += size


def _parameters(
    found: Required,
    pipeline: ShardedPipeline,
    rank: int,
    visit: _Visit,
    alike: list[str],
    in_two: list[_Visit],
) -> None:
    """UNSHARD and RESHARD of a visit; ``in_two``: the visit after the next, if there is one."""
    sharding, store = pipeline.sharding, f"memory of rank {rank}"
    is_freed, begins = sharding.zero == 3, visit.kind == "F" and visit.is_first
    if not (is_freed or begins):
        return
    again = sharding.gather if sharding.regather is None else sharding.regather
    is_copy = visit.kind == "B" and visit.number == 0
    unshard, reshard = visit.collective("UNSHARD"), visit.collective("RESHARD")
    found.task(
        unshard, 0 if is_copy else sharding.gather if begins else again, f"NIC of rank {rank}"
    )
    for name in visit.tasks if is_freed else alike:
        found.wait(unshard, name)
    if not is_freed:
        return
    found.task(reshard, 0, f"buffers of rank {rank}")
    for name in visit.tasks:
        found.wait(name, reshard)
    for later in in_two:
        found.wait(reshard, later.collective("UNSHARD"))
    weights = _units(sharding.parameter, visit.stage)
    found.change(unshard, "start", store, weights)
    found.change(reshard, "end", store, -weights)


def _gradients(
    found: Required,
    pipeline: ShardedPipeline,
    rank: int,
    visit: _Visit,
    alike: list[str],
    in_two: list[_Visit],
) -> None:
    """REDUCE_GRAD of a backward visit."""
    sharding, store = pipeline.sharding, f"memory of rank {rank}"
    if not visit.is_last and sharding.zero < 2:
        return
    partly = sharding.reduce if sharding.rereduce is None else sharding.rereduce
    reduce, (first, *others) = visit.collective("REDUCE_GRAD"), visit.tasks
    found.task(reduce, sharding.reduce if visit.is_last else partly, f"NIC of rank {rank}")
    for name in visit.tasks if sharding.zero >= 2 else alike:
        found.wait(name, reduce)
    for name in others:
        found.wait(first, name)
    for name in (name for later in in_two for name in later.tasks):
        found.wait(reduce, name)
    gradient = _units(sharding.gradient, visit.stage) if sharding.zero >= 2 else 0
    found.change(first, "start", store, gradient)
    found.change(reduce, "end", store, -gradient)


def _units(given: int | tuple[int, ...], stage: int) -> int:
    return given[stage] if isinstance(given, tuple) else given
