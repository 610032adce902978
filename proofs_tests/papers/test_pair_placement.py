"""Where BPipe's pairs stand: the count of crossing pairs against exhaustive search, and figures."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from bubbleproof.papers.bpipe.node_places import (
    DeviceMesh,
    in_order,
    pair_adjacent,
)
from bubbleproof.papers.bpipe.pair_placement import (
    least_crossing,
    moving_pairs,
    pair_placement,
)
from bubbleproof.theory.families import member
from proofs_tests.papers.pair_search import fewest_by_search
from proofs_tests.sized import sized

MESHES = [
    DeviceMesh(stages=p, tensor=t, replicas=d, node=g)
    for p, d, t, g in product(range(2, 17), range(1, 5), (1, 2, 3, 4, 8), (2, 3, 4, 6, 8))
    if t <= g
]


def test_no_assignment_has_fewer_crossing_pairs() -> None:
    small = [mesh for mesh in MESHES if mesh.stages * mesh.replicas <= sized(12, full=20)]
    differing = 0
    for mesh in small:
        pairs = moving_pairs(mesh.stages, 4 * mesh.stages)
        found = len(pair_placement(mesh, 4 * mesh.stages).crossing)
        assert found == least_crossing(mesh, len(pairs)) == fewest_by_search(mesh, pairs), mesh
        differing += found > 0
    assert differing > 10


def test_every_group_has_a_place_and_the_least_number_crosses() -> None:
    for mesh in MESHES:
        found = pair_placement(mesh, 4 * mesh.stages)
        assert len(found.node) == mesh.stages * mesh.replicas
        assert max(Counter(found.node.values()).values()) <= mesh.places
        assert {*found.node.values()} <= {*range(mesh.num_nodes)}
        assert len(found.crossing) == least_crossing(mesh, len(found.pairs))


def test_the_pairs_that_move_are_those_of_the_schedule() -> None:
    for p in range(2, 11):
        for m in (1, p // 2 + 2, p, 2 * p):
            moved = member("bpipe", p=p, m=m).pipeline.choices.evictions
            assert moving_pairs(p, m) == tuple(sorted({one.source for one in moved})), (p, m)


def test_figure_5_puts_pairs_together_that_the_standard_order_parts() -> None:
    mesh = DeviceMesh(stages=16, node=8)
    found = pair_placement(mesh, 32)
    # Figure 5(b): node 0 has stages 0 15 1 14 2 13 3 12, so every pair shares a node.
    assert found.how == "pair-adjacent"
    assert {s for s in range(16) if found.node[0, s] == 0} == {0, 15, 1, 14, 2, 13, 3, 12}
    assert found.statement == "all 7 pairs share a node"
    # Two boundaries between consecutive stages: 3 to 4 and 11 to 12.
    assert found.consecutive == 2
    plain = in_order(mesh, range(16))
    assert all(plain[0, s] != plain[0, 15 - s] for s in range(8))


def test_an_odd_number_of_stages_is_placed_where_bpipes_own_order_cuts_a_pair() -> None:
    mesh = DeviceMesh(stages=7, replicas=2, node=4)
    # 7 stages: pairs 0 and 1 move (7 - s > ceil(9/2) = 5). Replica 1 begins at place 7, the last of
    # node 1, so its pair (0,6) takes places 7 and 8 and crosses.
    assert moving_pairs(7, 14) == (0, 1)
    own = in_order(mesh, pair_adjacent(7))
    assert own[1, 0] != own[1, 6]
    assert pair_placement(mesh, 14).crossing == ()


def test_where_no_placement_exists_the_inner_pairs_cross() -> None:
    # Nodes of 6 GPUs, t = 2: 3 places, one pair each. 3 replicas of 8 stages: 24 groups on 8 nodes,
    # 9 moving pairs, so one crosses at least; 2 is the innermost that moves.
    found = pair_placement(DeviceMesh(stages=8, tensor=2, replicas=3, node=6), 32)
    assert [s for _, s in found.crossing] == [2]
    assert "1 of 9 pairs stand on two nodes: 8 nodes of 3 places" in found.statement
    # t = g: a stage fills a node, so every pair crosses.
    whole = pair_placement(DeviceMesh(stages=8, tensor=8, node=8), 32)
    assert len(whole.crossing) == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tensor": 16}, r"tensor must be at most the GPUs of a node \(8\), got 16; use 8"),
        ({"nodes": 1, "replicas": 2}, "16 groups of 1 GPUs need 2 nodes of 8, got 1"),
        ({"replicas": 0}, "replicas must be 1 or more, got 0"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(given: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        DeviceMesh(stages=8, **given)
