"""PipeMesh's planner (section IV): chunks, the queue's size, sharding and what is recomputed.

As printed: the number of chunks is the largest of those listed whose forward pass is no shorter
than a message (C_PP <= C_comp^fwd); the queue and the recomputed operations are those of Eq. 6 to 9
(``buffer_queue``, ``recomputed_operations``). The choice is *executable* where Algorithm 1 as
printed ends for it and adds no bubble, and the built schedule fits every rank's memory
(``mesh_runs``). Otherwise ``note`` names the q and why, and what runs is the best that does.

As it should be: for every listed number of chunks and every q, the least recomputation with which
q fits; the plans are built, the least predicted first, ``MOST_BUILT`` of them that run, and the
least measured one stays. It is part of the joint plan (``PaperChoice.improved``).

The table ``[paper.pipemesh]`` tells of a *rank*: ``parameters`` (psi), ``replicas`` (D),
``communication``, ticks to gather or reduce all its parameters, of which a chunk takes its share
rounded up; and ``operations``, each with ``name``, ``activation`` (memory units), ``ticks`` (of one
microbatch, forward) and ``count``. ``memory.static`` of the file holds ZeRO-1's (12/D + 4) psi
bytes and what else there is. Costs of other plans are those of the file with ZeRO-1's collectives.
Where ranks differ the planner counts by the slowest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from bubbleproof.planners.papers.buffer_queue import Mesh, Queue, planned_queue
from bubbleproof.planners.papers.mesh_runs import (
    MeshPlan,
    checked,
    model_state_bytes,
    runs_as_printed,
    static_of_rank,
)
from bubbleproof.planners.papers.optimizer_sharding import with_optimizer_sharding
from bubbleproof.planners.papers.paper_choice import (
    Given,
    PaperChoice,
    Run,
    even_candidate,
    step_ticks,
)
from bubbleproof.planners.papers.recomputed_operations import (
    Operation,
    Selection,
    least_ticks,
    printed_selection,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, shaped
from bubbleproof.theory.pipelines.stage_numbers import column

MOST_BUILT = 12
NEEDED = ("parameters", "replicas", "communication", "operations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meshed:
    """A number of chunks: its plain pipeline, its operations and what the planner counts with.

    ``base`` are bytes that a pass stores whatever is recomputed, ``budget`` is M_b less what a rank
    holds beside model state; None for no limit.
    """

    plain: Pipeline
    mesh: Mesh
    operations: tuple[Operation, ...]
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
            operations=self.operations,
            beside=self.beside,
            queue=queue,
            selection=selection,
        )


def pipemesh_choice(given: Given) -> PaperChoice:
    """The paper's choice and what runs.

    Raises ``ValueError`` for a table that lacks a number, or has one that does not fit the file's.
    """
    for key in NEEDED:
        if key not in given.table:
            raise ValueError(f"plan --paper pipemesh needs {key} in [paper.pipemesh], got none")
    meshes = list(meshes_of(given.space, given.table))
    if not meshes:
        chunks = ", ".join(map(str, given.space.chunks))
        raise ValueError(
            f"plan.chunks must list what divides a rank's work and operations, got {chunks}"
        )
    passing = [one for one in meshes if one.mesh.message <= one.mesh.forward]
    chosen = max(passing or meshes[:1], key=lambda one: one.mesh.num_chunks)
    plan = printed_plan(chosen)
    own = None if plan is None else checked(plan)
    trouble = _trouble(chosen, plan, own)
    best = best_run([chosen]) if trouble else None
    run = own if not trouble and isinstance(own, Run) else best and best[1]
    every = best_run(meshes)
    cost = partial(with_optimizer_sharding, ticks=cast("int", given.table["communication"]))
    return PaperChoice(
        paper="pipemesh",
        choice=_told(chosen, plan),
        executable=not trouble,
        note=_note(trouble, plan, best, run),
        value=None if run is None else _ticks(run),
        run=run,
        cost=cost,
        improved=None if every is None else every[1],
    )


def meshes_of(space: PlanSpace, table: Mapping[str, object]) -> Iterator[Meshed]:
    """The numbers of chunks that the file lists and that divide what there is."""
    for chunks in sorted(space.chunks):
        try:
            plain = shaped(space, even_candidate(space, chunks)).pipeline
        except NotLegalError:
            continue
        meshed = _meshed(plain, table)
        if meshed is not None:
            yield meshed


def _meshed(plain: Pipeline, table: Mapping[str, object]) -> Meshed | None:
    """None where a chunk has no whole number of each operation."""
    chunks = plain.num_chunks
    operations: list[Operation] = []
    for one in cast("list[dict[str, object]]", table["operations"]):
        count = cast("int", one["count"])
        if count % chunks:
            return None
        operation = Operation(
            name=str(one["name"]),
            size=cast("int", one["activation"]),
            ticks=cast("int", one["ticks"]),
        )
        operations += [operation] * (count // chunks)
    parameters, replicas = (cast("int", table[key]) for key in ("parameters", "replicas"))
    beside = static_of_rank(plain) - model_state_bytes(parameters, replicas)
    if beside < 0:
        least = model_state_bytes(parameters, replicas)
        raise ValueError(
            f"memory.static must hold the (12/D + 4) psi = {least} units of model state of "
            f"paper.pipemesh.parameters, got {static_of_rank(plain)}"
        )
    stored, given = int(column(plain.activation).max()), sum(o.size for o in operations)
    if given > stored:
        raise ValueError(
            f"the operations of a chunk store {given} units, more than its activation of {stored}; "
            "memory.activation must be all that a rank stores"
        )
    caps = [store.capacity for store in plain.problem().stores if store.capacity is not None]
    mesh = Mesh(
        num_ranks=plain.num_ranks,
        num_chunks=chunks,
        num_microbatches=plain.num_microbatches,
        replicas=replicas,
        parameters=parameters,
        forward=int(plain.ticks.forward.max()),
        backward=int(plain.ticks.backward.max()),
        communication=-(-cast("int", table["communication"]) // chunks),
        message=_message_ticks(plain),
    )
    return Meshed(
        plain=plain,
        mesh=mesh,
        operations=tuple(operations),
        base=stored - given,
        beside=beside,
        budget=min(caps) - beside if caps else None,
    )


def _message_ticks(plain: Pipeline) -> int:
    """C_PP: the longest message between stages, its latency included."""
    between = plain.boundaries
    return int((between.ticks + between.latency).max(initial=0))


def printed_plan(meshed: Meshed) -> MeshPlan | None:
    """Eq. 6 to 9; None where nothing fits."""
    largest, exposed = meshed.largest_queue(), {q.size: q.exposed_ticks for q in meshed.queues}

    def of(stored: int) -> int | None:
        queue = largest(stored)
        return None if queue is None else exposed[queue.size]

    selection = printed_selection(
        meshed.operations,
        passes=meshed.mesh.passes,
        base=meshed.base,
        start=exposed[meshed.mesh.num_microbatches],
        exposed=of,
    )
    if selection is None:
        return None
    queue = largest(selection.stored)
    assert queue is not None
    return meshed.plan(queue, selection)


def plans(meshed: Meshed) -> Iterator[MeshPlan]:
    """For every q the least recomputation with which it fits, by the paper's count."""
    table = least_ticks(meshed.operations, meshed.base)
    for queue in meshed.queues:
        count = len(table)
        if meshed.budget is not None:
            room = queue.most_stored(meshed.budget, is_below=False)
            count = bisect_right(table, room, key=lambda one: one.stored)
        if count:
            yield meshed.plan(queue, table[count - 1])


def best_run(meshes: list[Meshed]) -> tuple[MeshPlan, Run] | None:
    """The plan of the least measured ticks, of the first ``MOST_BUILT`` that run."""
    listed = sorted((plan for one in meshes for plan in plans(one)), key=lambda p: p.predicted)
    found: list[tuple[int, MeshPlan, Run]] = []
    for plan in listed:
        run = checked(plan)
        if isinstance(run, Run):
            found.append((_ticks(run), plan, run))
        if len(found) == MOST_BUILT:
            break
    best = min(found, key=lambda one: one[0], default=None)
    return None if best is None else best[1:]


def _trouble(meshed: Meshed, plan: MeshPlan | None, own: Run | str | None) -> str:
    """What keeps the choice from running as printed; empty where it runs."""
    if plan is None:
        return "no queue fits the memory, whatever is recomputed"
    if (why := runs_as_printed(plan)) is not None:
        return why
    if isinstance(own, str):
        return f"q = {plan.queue.size}: built, {own}"
    if meshed.mesh.message > meshed.mesh.forward:
        return f"a message takes longer than a forward pass of {meshed.mesh.num_chunks} chunks"
    return ""


def _note(
    trouble: str, plan: MeshPlan | None, best: tuple[MeshPlan, Run] | None, run: Run | None
) -> str:
    if trouble:
        if best is None:
            return f"{trouble}; nothing runs in its place"
        queue = best[0].queue
        return f"{trouble}; the best that runs, Algorithm 1 repaired, has q = {queue.size}"
    assert plan is not None
    assert run is not None
    more = _ticks(run) - plan.predicted
    if more == 0:
        return "it runs as the paper counts"
    return f"it takes {abs(more)} ticks {'more' if more > 0 else 'less'} than the paper counts"


def _told(meshed: Meshed, plan: MeshPlan | None) -> dict[str, object]:
    """The choice in plain values; ratios as text."""
    if plan is None:
        return {"chunks": meshed.mesh.num_chunks, "q": None}
    queue, flags = plan.queue, plan.selection.recomputed
    names = [o.name for o, again in zip(plan.operations, flags, strict=True) if again]
    return {
        "chunks": meshed.mesh.num_chunks,
        "q": queue.size,
        "enqueue": list(queue.enqueue),
        "dequeue": list(queue.dequeue),
        "psi_g": str(queue.gradients),
        "psi_p": str(queue.sharded),
        "buckets": list(queue.buckets),
        "recompute": [f"{name} x{names.count(name)}" for name in dict.fromkeys(names)],
        "exposed": queue.exposed_ticks,
        "memory": -int(-queue.total_bytes(plan.selection.stored) // 1) + meshed.beside,
        "ticks": plan.predicted,
    }


def _ticks(run: Run) -> int:
    return step_ticks(run.pipeline.problem(), run.schedule)
