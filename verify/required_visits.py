"""What the collectives of a sharded pipeline require, by name (PipeMesh sections II-A and III-B).

A rank visits its chunks: forwards for the microbatches enqueued together, backwards for those
dequeued together. A visit may gather the parameters before it (UNSHARD), free them after it
(RESHARD) and reduce its gradients after it (REDUCE_GRAD), by the level of ZeRO. F reads the
parameters; so do R, B and I in a backward visit. B, I and W add to the gradient.

UNSHARD      before what reads in a stage's first forward visit; at level 3 before what reads in
             every visit. The first backward visit of a rank copies the forward's parameters, in 0
             ticks. What is not freed serves all visits of the stage.
RESHARD      at level 3 after what reads in every visit.
REDUCE_GRAD  after what adds in a stage's last backward visit; from level 2 on after every one. It
             sums what no other reduces. From level 2 on the first B or I of its visit, which the
             others wait for, acquires the gradient; at level 1 it lies whole on its rank.

What is sharded has two buffers: UNSHARD of visit n+2 waits for RESHARD of visit n, and from level 2
on the Bs and Is of visit n+2 for REDUCE_GRAD of visit n.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify.required_table import RequiredTable, action_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """Visit ``number`` of a rank in one direction; ``slice`` tells a stage's collectives apart.

    ``passes`` are its Fs, or its Bs and Is in the order in which a gradient goes through them;
    ``readers`` and ``adders`` what reads parameters and adds to the gradient.
    """

    is_forward: bool
    number: int
    slice: int
    stage: int
    is_first: bool
    is_last: bool
    passes: list[str]
    readers: list[str]
    adders: list[str]

    def collective(self, kind: str) -> str:
        return action_name(self.stage, kind, None, self.slice)


def require_collectives(
    found: RequiredTable, pipeline: Pipeline, sharding: Sharding, ranks: list[int]
) -> None:
    """Add the collectives of every rank's visits. ``ranks``: who runs each stage.

    Parameters
    ----------
    ranks
        The rank of each stage.
    """
    actions = _actions(found)
    enqueue, dequeue = (
        given or (pipeline.num_microbatches,) for given in (sharding.enqueue, sharding.dequeue)
    )
    for rank in range(pipeline.num_ranks):
        stages = [stage for stage, home in enumerate(ranks) if home == rank]
        forwards = list(_visits(actions, "F", stages, enqueue, 0))
        backwards = list(_visits(actions, "BI", stages[::-1], dequeue, len(enqueue)))
        for listed in (forwards, backwards):
            for visit in listed:
                in_two = [other for other in listed if other.number == visit.number + 2]
                alike = [other for other in listed if other.stage == visit.stage]
                _parameters(found, sharding, rank, visit, alike, in_two)
                if not visit.is_forward:
                    _gradients(found, sharding, rank, visit, alike, in_two)


def _actions(found: RequiredTable) -> dict[tuple[int, str, int], list[str]]:
    """The names of computations by stage, kind and microbatch, by slice and part."""
    numbered: dict[tuple[int, str, int], list[tuple[int, int, str]]] = {}
    for name in found.tasks:
        if (match := re.fullmatch(r"(\d+)([FBIWR])(\d+)(?:\.(\d+))?(?:#(\d+))?", name)) is None:
            continue
        stage, kind, microbatch, piece, part = match.groups(default="0")
        row = numbered.setdefault((int(stage), kind, int(microbatch)), [])
        row.append((int(piece), int(part), name))
    return {key: [name for _, _, name in sorted(row)] for key, row in numbered.items()}


def _visits(
    actions: dict[tuple[int, str, int], list[str]],
    kinds: str,
    stages: list[int],
    sizes: tuple[int, ...],
    slices: int,
) -> Iterator[_Visit]:
    """Operation by operation, and of each chunk by chunk."""

    def named(stage: int, microbatches: range, kinds: str) -> list[str]:
        return [
            name
            for microbatch in microbatches
            for kind in kinds
            for name in actions.get((stage, kind, microbatch), ())
        ]

    number = first = 0
    for operation, size in enumerate(sizes):
        for stage in stages:
            served = range(first, first + size)
            own = [named(stage, range(j, j + 1), kinds) for j in served]
            yield _Visit(
                is_forward=kinds == "F",
                number=number,
                slice=slices + operation,
                stage=stage,
                is_first=operation == 0,
                is_last=operation == len(sizes) - 1,
                passes=[name for row in own for name in (row if kinds == "F" else row[::-1])],
                readers=named(stage, served, "F" if kinds == "F" else "RBI"),
                adders=named(stage, served, "BIW"),
            )
            number += 1
        first += size


def _parameters(
    found: RequiredTable,
    sharding: Sharding,
    rank: int,
    visit: _Visit,
    alike: list[_Visit],
    in_two: list[_Visit],
) -> None:
    """UNSHARD and RESHARD of a visit; ``in_two``: the visit after the next, if there is one."""
    store = f"memory of rank {rank}"
    is_freed, begins = sharding.zero == 3, visit.is_forward and visit.is_first
    if not (is_freed or begins):
        return
    again = sharding.gather if sharding.regather is None else sharding.regather
    is_copy = not visit.is_forward and visit.number == 0
    unshard, reshard = visit.collective("UNSHARD"), visit.collective("RESHARD")
    found.task(
        unshard, 0 if is_copy else sharding.gather if begins else again, f"NIC of rank {rank}"
    )
    for served in [visit] if is_freed else alike:
        for name in served.readers:
            found.wait(unshard, name)
    if not is_freed:
        return
    found.task(reshard, 0, f"buffers of rank {rank}")
    for name in visit.readers:
        found.wait(name, reshard)
    for later in in_two:
        found.wait(reshard, later.collective("UNSHARD"))
    weights = _units(sharding.parameter, visit.stage)
    found.change(unshard, "start", store, weights)
    found.change(reshard, "end", store, -weights)


def _gradients(
    found: RequiredTable,
    sharding: Sharding,
    rank: int,
    visit: _Visit,
    alike: list[_Visit],
    in_two: list[_Visit],
) -> None:
    """REDUCE_GRAD of a backward visit."""
    store = f"memory of rank {rank}"
    if not visit.is_last and sharding.zero < 2:
        return
    partly = sharding.reduce if sharding.rereduce is None else sharding.rereduce
    reduce, (first, *others) = visit.collective("REDUCE_GRAD"), visit.passes
    found.task(reduce, sharding.reduce if visit.is_last else partly, f"NIC of rank {rank}")
    for summed in [visit] if sharding.zero >= 2 else alike:
        for name in summed.adders:
            found.wait(name, reduce)
    if sharding.zero < 2:
        return
    for name in others:
        found.wait(first, name)
    for later in in_two:
        for name in later.passes:
            found.wait(reduce, name)
    gradient = _units(sharding.gradient, visit.stage)
    found.change(first, "start", store, gradient)
    found.change(reduce, "end", store, -gradient)


def _units(given: int | tuple[int, ...], stage: int) -> int:
    return given[stage] if isinstance(given, tuple) else given
