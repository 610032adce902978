"""PipeMesh's buffer queue: sequences and shares by section IV-B, and the bytes of a built plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.papers.pipemesh.mesh_numbers import static_of_rank
from bubbleproof.papers.pipemesh.mesh_runs import built
from bubbleproof.papers.pipemesh.pipemesh_planner import printed_plan
from bubbleproof.papers.pipemesh.pipemesh_queue import QueueNumbers, planned_queue
from proofs_tests.papers.random_meshes import SEEDS, drawn


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_and_shares_are_those_of_section_4b(seed: int) -> None:
    mesh = drawn(seed, operations=1).mesh
    m, late, back = mesh.num_microbatches, mesh.communication, mesh.backward
    for size in mesh.queues:
        queue = planned_queue(mesh, size)
        e, d = queue.enqueue, queue.dequeue
        assert (e[0], sum(e), sum(d), len(d)) == (size, m, m, len(e))
        assert len(e) == 1 + -(-(m - size) // size)
        reducing, front, gathering = queue.buckets
        # Eq. 3 to 5 vanish, each collective hidden by its own passes ...
        assert len(d) == 1 or late * queue.gradients <= reducing * back
        assert late * queue.sharded <= gathering * back
        if mesh.forward:  # of forwards that take no time the paper's B_Z3^fwd says nothing
            assert late * queue.sharded <= front * mesh.forward
        # ... and no larger share of ZeRO-3 would be.
        if m * back >= len(d) * late:
            assert queue.gradients == 1
            if mesh.num_chunks > 4 and queue.sharded < 1:
                assert late * queue.sharded == gathering * back
        else:
            assert queue.sharded == 0
            if back and len(d) > 1 and d[-1] < m - len(d) + 1:  # no time hides nothing
                assert (d[-1] - 1) * back < late <= d[-1] * back


def test_the_table_of_the_paper_has_the_sequences_of_its_text() -> None:
    """Section VI-A: two elements each, and the dequeue sequence is the enqueue sequence.

    Table IV's q and B / D microbatches; C_fwd : C_bwd are its totals, C_DP half of Eq. 2's first
    term, T_DP_crit, as all else is hidden ("overlapped except that of the first model chunk").
    """
    rows = (
        (3, 6, 12, 6, 15541, 25672, 2451), (4, 6, 24, 12, 50120, 92171, 7579),
        (4, 5, 16, 8, 48836, 88411, 8592), (4, 8, 24, 12, 60359, 108054, 6388),
    )  # fmt: skip
    for p, chunks, m, q, forward, backward, late in rows:
        each = chunks * m
        mesh = QueueNumbers(
            num_ranks=p,
            num_chunks=chunks,
            num_microbatches=m,
            replicas=3,
            parameters=1,
            forward=forward // each,
            backward=backward // each,
            communication=late // 2,
        )
        queue = planned_queue(mesh, q)
        assert queue.enqueue == queue.dequeue == (q, m - q)
        assert queue.gradients == 1
        assert queue.exposed_ticks == 2 * (late // 2)


@pytest.mark.parametrize("own_shard", [True, False])
def test_what_a_plan_holds_is_what_is_sharded_and_what_is_not(own_shard: bool) -> None:
    given = drawn(3, operations=4)
    given = replace(given, mesh=replace(given.mesh, own_shard=own_shard))
    found = printed_plan(given)
    assert found is not None
    pipeline = built(found)
    sharding = pipeline.choices.sharding
    assert sharding is not None
    mesh, queue = found.queue.mesh, found.queue
    held = static_of_rank(pipeline)
    assert isinstance(sharding.parameter, int)
    assert isinstance(sharding.gradient, int)
    # Two buffers each of gathered parameters for forwards and backwards, two of gradients.
    total = held + 4 * sharding.parameter + 2 * sharding.gradient
    exact = queue.state_bytes
    assert exact <= total <= exact + 7
    assert mesh.num_chunks == pipeline.num_chunks
