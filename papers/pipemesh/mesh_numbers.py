"""What PipeMesh's planner counts with: the numbers of a chunk, from a problem file and its table.

The table ``[paper.pipemesh]`` tells of a *rank*: ``parameters`` (psi), ``replicas`` (D),
``communication``, ticks to gather or reduce all its parameters, of which a chunk takes its share
rounded up; ``own_shard``, false where gathered parameters have no room for a device's own shard
(``papers.pipemesh.pipemesh_formulas``); and ``operations``, each with ``name``, ``activation``
(memory units), ``ticks`` (of one microbatch, forward) and ``count``. ``memory.static`` of the file
holds ZeRO-1's (12/D + 4) psi bytes and what else there is. Without the table there is no data
parallelism, and what may be recomputed is the file's ``[choices.recompute]``, where it opens all
stages, as one operation. Where ranks differ the planner counts by the slowest and the fullest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NoReturn

import numpy as np

from bubbleproof.papers.pipemesh.mesh_runs import MeshPlan
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue, QueueNumbers, planned_queue
from bubbleproof.papers.pipemesh.recomputed_operations import RecomputedOperation, Selection
from bubbleproof.papers.planning.paper_choice import even_candidate
from bubbleproof.papers.planning.unmet import UnmetPremiseError
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.theory.pipelines.stage_numbers import column

MOST_CHUNKS = 64  # looked through for a number that divides


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshTable:
    """The table ``[paper.pipemesh]``; ``operations`` as they stand in it."""

    parameters: int = 0
    replicas: int = 1
    communication: int = 0
    own_shard: bool = True
    operations: Sequence[Mapping[str, object]] = ()

    def of_chunk(self, chunks: int) -> tuple[RecomputedOperation, ...] | None:
        """The operations of one chunk; None where it has no whole number of each."""
        found: list[RecomputedOperation] = []
        for one in self.operations:
            match one:
                case {
                    "name": str(name),
                    "activation": int(size),
                    "ticks": int(ticks),
                    "count": int(count),
                }:
                    pass
                case _:
                    raise ValueError(f"an operation has a name and three whole numbers, got {one}")
            if count % chunks:
                return None
            found += [RecomputedOperation(name=name, size=size, ticks=ticks)] * (count // chunks)
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshNumbers:
    """A number of chunks: its plain pipeline, its operations and what the planner counts with.

    ``candidate`` is the one of the space that it is, None where it is of none. ``base`` are bytes
    that a pass stores whatever is recomputed, ``budget`` is M_b less what a rank holds beside
    model state; None for no limit.
    """

    plain: Pipeline
    candidate: Candidate | None
    mesh: QueueNumbers
    operations: tuple[RecomputedOperation, ...]
    base: int
    beside: int
    budget: int | None

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The plan for every q."""
        return tuple(planned_queue(self.mesh, size) for size in self.mesh.queues)

    def largest_queue(self) -> Callable[[int], Queue | None]:
        """F(o): the largest q with M_sum(q) < M_b."""
        queues = self.queues[::-1]
        if self.budget is None:
            return lambda _: queues[0]
        rooms = [(queue.most_stored(self.budget, is_below=True), queue) for queue in queues]
        return lambda stored: next((queue for room, queue in rooms if stored <= room), None)

    def plan(self, queue: Queue, selection: Selection) -> MeshPlan:
        return MeshPlan(
            plain=self.plain,
            candidate=self.candidate,
            operations=self.operations,
            beside=self.beside,
            queue=queue,
            selection=selection,
        )


def meshes_of(space: PlanSpace, table: MeshTable) -> list[MeshNumbers]:
    """The numbers of chunks that the file lists and that divide what there is, in order.

    Raises ``UnmetPremiseError`` where there is none, with the nearest number that does.
    """
    found = [_meshed(space, table, chunks) for chunks in sorted(space.chunks)]
    meshes = [one for one in found if one is not None]
    if meshes:
        return meshes
    listed = ", ".join(map(str, space.chunks))
    others = sorted(range(1, MOST_CHUNKS + 1), key=lambda one: abs(one - space.chunks[0]))
    near = next((one for one in others if _meshed(space, table, one) is not None), None)
    if space.layers is not None:
        _refuse_layers(space.layers.number, space.pipeline.num_ranks, listed, near)
    raise UnmetPremiseError(
        "section II-A divides a model evenly:",
        f"plan.chunks must list what divides a rank's work and operations, got {listed}",
        "" if near is None else str(near),
    )


def _refuse_layers(layers: int, ranks: int, listed: str, near: int | None) -> NoReturn:
    """Raise ``UnmetPremiseError`` for layers that no listed number of chunks divides evenly."""
    sizes = [one for one in range(1, layers + 1) if layers % one == 0]
    size = min(sizes, key=lambda one: abs(one - ranks))
    whole = f"{max(1, round(layers / ranks)) * ranks} layers, or such as {size} ranks"
    raise UnmetPremiseError(
        "section II-A divides the layers evenly among the chunks of all ranks:",
        f"{layers} layers are not divisible by {ranks} ranks of {listed} chunks",
        whole if near is None else f"chunks = {near}",
    )


def _meshed(space: PlanSpace, table: MeshTable, chunks: int) -> MeshNumbers | None:
    """None where the work of a rank or its operations have no such share."""
    candidate = even_candidate(space, chunks)
    try:
        shape = shaped(space, candidate)
    except NotLegalError:
        return None
    operations = table.of_chunk(chunks) if table.operations else _of_choices(shape)
    if operations is None:
        return None
    plain = shape.pipeline
    beside = _beside(plain, table)
    caps = [store.capacity for store in plain.problem().stores if store.capacity is not None]
    return MeshNumbers(
        plain=plain,
        candidate=candidate if candidate in space.candidates() else None,
        mesh=_mesh(plain, table),
        operations=operations,
        base=_base(plain, operations),
        beside=beside,
        budget=min(caps) - beside if caps else None,
    )


def _of_choices(shape: ShapedPipeline) -> tuple[RecomputedOperation, ...]:
    """The recomputation that the file leaves open for all stages, of a chunk as a whole."""
    again, plain = None if shape.allowed is None else shape.allowed.recompute, shape.pipeline
    if again is None or not {*range(plain.num_stages)} <= {*again.stages}:
        return ()
    ticks = int(plain.ticks.forward.max()) if again.duration is None else again.duration
    size = int(column(plain.activation).max()) - again.kept
    return (RecomputedOperation(name="chunk", size=max(0, size), ticks=ticks),)


def _mesh(plain: Pipeline, table: MeshTable) -> QueueNumbers:
    between = plain.boundaries
    return QueueNumbers(
        num_ranks=plain.num_ranks,
        num_chunks=plain.num_chunks,
        num_microbatches=plain.num_microbatches,
        replicas=table.replicas,
        parameters=table.parameters,
        forward=int(plain.ticks.forward.max()),
        backward=int(plain.ticks.backward.max()),
        communication=-(-table.communication // plain.num_chunks),
        own_shard=table.own_shard,
        message=int((between.ticks + between.latency).max(initial=0)),
    )


def _beside(plain: Pipeline, table: MeshTable) -> int:
    """What the fullest rank holds beside ZeRO-1's state of the parameters."""
    static, state = static_of_rank(plain), model_state_bytes(table.parameters, table.replicas)
    if state > static:
        raise ValueError(
            f"memory.static must hold the (12/D + 4) psi = {state} units of model state of "
            f"paper.pipemesh.parameters, got {static}"
        )
    return static - state


def _base(plain: Pipeline, operations: Sequence[RecomputedOperation]) -> int:
    """What a pass of a chunk stores that no recomputation drops."""
    stored, given = int(column(plain.activation).max()), sum(o.size for o in operations)
    if given > stored:
        raise ValueError(
            f"the operations of a chunk store {given} units, more than its activation of {stored}; "
            "memory.activation must be all that a rank stores"
        )
    return stored - given


def model_state_bytes(parameters: int, replicas: int) -> int:
    """What a rank holds of the model with ZeRO-1: (12/D + 4) psi, rounded up."""
    return ceil((Fraction(12, replicas) + 4) * parameters)


def static_of_rank(pipeline: Pipeline) -> int:
    """The static memory of the fullest rank."""
    loads = np.zeros(pipeline.num_ranks, dtype=np.int64)
    np.add.at(loads, np.array(pipeline.stage_ranks), column(pipeline.static))
    return int(loads.max())
