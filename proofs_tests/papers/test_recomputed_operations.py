"""PipeMesh's Eq. 6 to 9: the dynamic program by enumeration and as an integer program (PuLP)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from bubbleproof.papers.pipemesh.mesh_numbers import MeshNumbers
from bubbleproof.papers.pipemesh.pipemesh_planner import plans, printed_plan
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue, planned_queue
from bubbleproof.solvers.engines.cbc import CBC
from bubbleproof.solvers.engines.pulp_alone import pulp
from proofs_tests.papers.random_meshes import SEEDS, drawn
from proofs_tests.sized import sized


def subsets(given: MeshNumbers) -> Iterator[tuple[int, int, tuple[bool, ...]]]:
    """(bytes stored, ticks recomputed, what is recomputed) of every set of operations."""
    for again in product((False, True), repeat=len(given.operations)):
        pairs = list(zip(given.operations, again, strict=True))
        yield (
            given.base + sum(o.size for o, flag in pairs if not flag),
            sum(o.ticks for o, flag in pairs if flag),
            again,
        )


def largest(given: MeshNumbers, stored: int) -> Queue | None:
    """F(o) by its definition."""
    sizes = [
        q
        for q in given.mesh.queues
        if given.budget is None or planned_queue(given.mesh, q).total_bytes(stored) < given.budget
    ]
    return planned_queue(given.mesh, max(sizes)) if sizes else None


def enumerated(given: MeshNumbers) -> int | None:
    """Eq. 6 with F(o): the least added ticks, over all sets of operations."""
    j = given.mesh.num_chunks * given.mesh.num_microbatches + given.mesh.num_ranks - 1
    costs = []
    for stored, ticks, _ in subsets(given):
        queue = largest(given, stored)
        if queue is not None:
            costs.append(j * ticks + queue.exposed_ticks)
    return min(costs, default=None)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dynamic_program_is_exact_against_all_subsets(seed: int) -> None:
    given = drawn(seed, operations=1 + seed % 7)
    found, least = printed_plan(given), enumerated(given)
    assert (found is None) == (least is None)
    if found is None or least is None:
        return
    # The reconstructed set stores and recomputes what the table says, and q is F of what it stores.
    rows = {again: (stored, ticks) for stored, ticks, again in subsets(given)}
    stored, ticks = rows[found.selection.recomputed]
    assert stored == found.selection.stored
    queue = largest(given, stored)
    assert queue is not None
    assert queue.size == found.queue.size
    assert given.mesh.passes * ticks + queue.exposed_ticks == least
    # Eq. 7 begins with T(B) where the differences of Eq. 9 begin with T(F(0)).
    first = largest(given, given.base)
    assert first is not None
    start = planned_queue(given.mesh, given.mesh.num_microbatches).exposed_ticks
    assert found.selection.cost == least + start - first.exposed_ticks


def integer_program(given: MeshNumbers, *, is_largest: bool) -> int | None:
    """The same choice as an integer program: x_k stores operation k, y_q is the queue.

    ``is_largest``: q must be F(o), as printed; otherwise any q that fits, which can be better.
    """
    model = pulp.LpProblem("pipemesh", pulp.LpMinimize)
    queues = {q: planned_queue(given.mesh, q) for q in given.mesh.queues}
    full = sum(o.size for o in given.operations)

    def flag(name: str) -> pulp.LpVariable:
        return model.add_variable(name, 0, 1, cat=pulp.LpInteger)

    x = [flag(f"x{k}") for k in range(len(given.operations))]
    y = {q: flag(f"y{q}") for q in queues}
    room = {}
    for q, queue in queues.items():
        # The largest stored s with states + n (base + s) < budget.
        room[q] = full
        if given.budget is not None:
            left = (given.budget - queue.state_bytes) / queue.stored_passes - given.base
            room[q] = min(full, -int(-left // 1) - 1)
    stored = pulp.lpSum(o.size * v for o, v in zip(given.operations, x, strict=True))
    recomputed = pulp.lpSum(o.ticks * (1 - v) for o, v in zip(given.operations, x, strict=True))
    late = pulp.lpSum(queues[q].exposed_ticks * y[q] for q in y)
    model += given.mesh.passes * recomputed + late
    model += pulp.lpSum(y.values()) == 1
    for q in y:
        model += stored <= room[q] + (2 * full + abs(room[q]) + 1) * (1 - y[q])
        for more in (r for r in y if r > q and is_largest):
            model += stored >= room[more] + 1 - (abs(room[more]) + full + 1) * (1 - y[q])
    model.solve(pulp.COIN_CMD(path=CBC, msg=False))
    if pulp.LpStatus[model.status] != "Optimal":
        return None
    least: int = round(pulp.value(model.objective))
    return least


@pytest.mark.parametrize("seed", sized(range(12), full=range(100)))
def test_the_dynamic_program_is_exact_against_an_integer_program(seed: int) -> None:
    given = drawn(seed, operations=9)
    found, least = printed_plan(given), integer_program(given, is_largest=True)
    assert (found is None) == (least is None)
    if found is None or least is None:
        return
    more = given.mesh.passes * found.recomputed_ticks + found.queue.exposed_ticks
    assert more == least
    # What fits exactly is left out by the strict inequality of Eq. 6, and q need not be F(o).
    ours = [
        given.mesh.passes * one.recomputed_ticks + one.queue.exposed_ticks for one in plans(given)
    ]
    any_queue = integer_program(given, is_largest=False)
    assert any_queue is not None
    assert min(ours) <= any_queue <= least


@pytest.mark.parametrize("seed", SEEDS[:30])
def test_for_each_queue_as_little_is_recomputed_as_fits(seed: int) -> None:
    given = drawn(seed, operations=1 + seed % 7)
    wanted = {}
    for q in given.mesh.queues:
        queue = planned_queue(given.mesh, q)
        fitting = [
            ticks
            for stored, ticks, _ in subsets(given)
            if given.budget is None or queue.total_bytes(stored) <= given.budget
        ]
        if fitting:
            wanted[q] = min(fitting)
    assert {one.queue.size: one.recomputed_ticks for one in plans(given)} == wanted
