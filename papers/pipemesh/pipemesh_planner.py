"""PipeMesh's planner (section IV): chunks, the queue's size, sharding and what is recomputed.

As printed: the number of chunks is the largest of those listed whose forward pass is no shorter
than a message (C_PP <= C_comp^fwd); the queue and the recomputed operations are those of Eq. 6 to 9
(``papers.pipemesh.pipemesh_queue``, ``recomputed_operations``). The choice is *executable* where
Algorithm 1 as printed ends for it and adds no bubble, and the built schedule fits every rank's
memory (``mesh_runs``). Otherwise ``note`` names the q and why, and what runs is the best that does.

As it should be: for every listed number of chunks and every q, the least recomputation with which
q fits; the plans are built, the least predicted first, ``MOST_BUILT`` of them that run, and the
least measured one stays. It is part of the joint plan (``PaperChoice.improved``).

Costs of other plans are those of the file with ZeRO-1's collectives. What the planner counts with,
and the table ``[paper.pipemesh]``, is in ``mesh_numbers``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from math import ceil

from bubbleproof.papers.pipemesh.mesh_numbers import MeshNumbers, MeshTable, meshes_of
from bubbleproof.papers.pipemesh.mesh_runs import MeshPlan, checked, runs_as_printed
from bubbleproof.papers.pipemesh.optimizer_sharding import with_optimizer_sharding
from bubbleproof.papers.pipemesh.recomputed_operations import least_ticks, printed_selection
from bubbleproof.papers.planning.paper_choice import AcceptedSchedule, PaperChoice, PaperInput
from bubbleproof.papers.planning.unmet import lacking

MOST_BUILT = 12


def pipemesh_choice(given: PaperInput) -> PaperChoice:
    """The paper's choice and what runs.

    Raises ``ValueError`` for a table with a number that does not fit the file's.
    """
    table = MeshTable(**given.table)  # type: ignore[arg-type]  # the layout has checked them
    meshes = meshes_of(given.space, table)
    passing = [one for one in meshes if one.mesh.message <= one.mesh.forward]
    chosen = max(passing or meshes[:1], key=lambda one: one.mesh.num_chunks)
    plan = printed_plan(chosen)
    own = None if plan is None else checked(plan)
    trouble = _trouble(chosen, plan, own)
    best = best_run([chosen]) if trouble else None
    run = own if not trouble and isinstance(own, AcceptedSchedule) else best and best[1]
    every = best_run(meshes)
    cost = partial(with_optimizer_sharding, ticks=table.communication)
    return PaperChoice(
        paper="pipemesh",
        choice=_told(chosen, plan),
        executable=not trouble,
        note=_note(trouble, plan, best, run),
        value=None if run is None else run.ticks,
        run=run,
        cost=cost,
        improved=None if every is None else every[1],
    )


def printed_plan(meshed: MeshNumbers) -> MeshPlan | None:
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
    if selection is None or (queue := largest(selection.stored)) is None:
        return None
    return meshed.plan(queue, selection)


def plans(meshed: MeshNumbers) -> Iterator[MeshPlan]:
    """For every q the least recomputation with which it fits, by the paper's count."""
    table = least_ticks(meshed.operations, meshed.base)
    for queue in meshed.queues:
        count = len(table)
        if meshed.budget is not None:
            room = queue.most_stored(meshed.budget, is_below=False)
            count = bisect_right(table, room, key=lambda one: one.stored)
        if count:
            yield meshed.plan(queue, table[count - 1])


def best_run(meshes: list[MeshNumbers]) -> tuple[MeshPlan, AcceptedSchedule] | None:
    """The plan of the least measured ticks, of the first ``MOST_BUILT`` that run."""
    listed = sorted((plan for one in meshes for plan in plans(one)), key=lambda p: p.predicted)
    found: list[tuple[int, MeshPlan, AcceptedSchedule]] = []
    for plan in listed:
        run = checked(plan)
        if isinstance(run, AcceptedSchedule):
            found.append((run.ticks, plan, run))
        if len(found) == MOST_BUILT:
            break
    best = min(found, key=lambda one: one[0], default=None)
    return None if best is None else best[1:]


def _trouble(meshed: MeshNumbers, plan: MeshPlan | None, own: AcceptedSchedule | str | None) -> str:
    """What keeps the choice from running as printed; empty where it runs."""
    if plan is None:
        return _no_queue(meshed)
    if (why := runs_as_printed(plan)) is not None:
        return why
    if isinstance(own, str):
        return f"q = {plan.queue.size}: built, {own}"
    if meshed.mesh.message > meshed.mesh.forward:
        return (
            f"section IV-A's C_PP <= C_comp^fwd does not hold: a message takes "
            f"{meshed.mesh.message} ticks, a forward of {meshed.mesh.num_chunks} chunks "
            f"{meshed.mesh.forward}"
        )
    return ""


def _no_queue(meshed: MeshNumbers) -> str:
    """What the least memory of any q lacks, by the paper's count."""
    stored = min(one.stored for one in least_ticks(meshed.operations, meshed.base))
    held = min(ceil(queue.total_bytes(stored)) for queue in meshed.queues)
    unit = meshed.plain.memory_unit
    lacks = "" if meshed.budget is None else f": {lacking(held, meshed.budget, unit)}"
    return f"section IV-B, Eq. 6 has no queue within the memory, whatever is recomputed{lacks}"


def _note(
    trouble: str,
    plan: MeshPlan | None,
    best: tuple[MeshPlan, AcceptedSchedule] | None,
    run: AcceptedSchedule | None,
) -> str:
    if trouble:
        if best is None:
            return f"{trouble}; nothing runs in its place"
        queue = best[0].queue
        return f"{trouble}; the best that runs, Algorithm 1 repaired, has q = {queue.size}"
    more = 0 if plan is None or run is None else run.ticks - plan.predicted
    if more == 0:
        return "it runs as the paper counts"
    return f"it takes {abs(more)} ticks {'more' if more > 0 else 'less'} than the paper counts"


def _told(meshed: MeshNumbers, plan: MeshPlan | None) -> dict[str, object]:
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
