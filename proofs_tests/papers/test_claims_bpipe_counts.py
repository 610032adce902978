"""BPipe's count of evictions against exhaustive search; the places of pairs against the figures."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from bubbleproof.papers.bpipe.bpipe_claims import count
from bubbleproof.papers.bpipe.bpipe_placement import (
    crossing,
    following,
    in_order,
    nodes,
    pairs_first,
    share_crossing,
    transferring,
)
from bubbleproof.papers.bpipe.bpipe_schedules import evictions
from bubbleproof.papers.bpipe.bpipe_search import least_evictions
from bubbleproof.papers.bpipe.node_places import pair_adjacent, standard
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward


@pytest.mark.parametrize(("p", "s"), [(4, 0), (5, 0), (6, 0), (6, 1)])
def test_the_count_is_the_least_that_any_plan_of_transfers_needs(p: int, s: int) -> None:
    kept = -(-(p + 2) // 2)
    for m in range(1, 2 * p + 1):
        slots = computation_slots(OneForwardOneBackward(), p, m)
        found = least_evictions(slots[s], slots[p - 1 - s], kept)
        assert count({"p": p, "m": m, "s": s}) == found, m


def test_figure_4_evicts_microbatches_1_3_and_5() -> None:
    # p = 4, m = 8: 1 in the warm-up, then 3 when 1 is loaded and 5 when 3 is (section 3.2); with 5
    # loaded no forward is left. mu = 3, n = 1, T = 2: 1 + floor(4/2) + min(0, 1) = 3.
    at = {"p": 4, "m": 8, "s": 0}
    assert count(at) == evictions(at) == 3


def test_figure_5_puts_a_pair_on_neighbouring_gpus() -> None:
    assert pair_adjacent(16)[:8] == [0, 15, 1, 14, 2, 13, 3, 12]
    at = {"p": 16, "t": 1, "d": 1, "g": 8}
    pairs = {(s, 15 - s) for s in range(8)}
    assert transferring(at) == {(s, 15 - s) for s in range(7)}  # section 3.3: s <= (16-4)/2
    assert crossing(at, in_order(standard), pairs) == 8
    assert crossing(at, in_order(pair_adjacent), pairs) == 0
    # 7 -> 8 alone in order; 3 -> 4 and 11 -> 12 side by side.
    assert following(at) == {(s, s + 1) for s in range(15)}
    assert crossing(at, in_order(standard), following(at)) == 1
    assert crossing(at, in_order(pair_adjacent), following(at)) == 2


def test_figure_6_repeats_on_the_second_node() -> None:
    at = {"p": 4, "t": 2, "d": 2, "g": 8}
    for places in (in_order(pair_adjacent), pairs_first):
        assert [nodes(at, places, s) for s in range(4)] == [[0, 0, 1, 1]] * 4


def test_an_odd_number_of_stages_moves_the_second_replica_off_the_pairs() -> None:
    # p = 5, t = 2, d = 2, nodes of 4: stages 0 and 4 of replica 0 are on GPUs 0 to 3, of replica 1
    # on GPUs 10 to 13, two of them on node 2 and two on node 3: half of the links cross.
    at = {"p": 5, "t": 2, "d": 2, "g": 4}
    assert transferring(at) == {(0, 4)}
    one_by_one = in_order(pair_adjacent)
    assert nodes(at, one_by_one, 0) == [0, 0, 2, 2]
    assert nodes(at, one_by_one, 4) == [0, 0, 3, 3]
    assert share_crossing(at, one_by_one) == Fraction(1, 2)
    # Pairs first: stages 0 4 1 3 of replica 0 on groups 0 to 3, of replica 1 on 4 to 7, two groups
    # a node; the stages 2 are on groups 8 and 9.
    assert [nodes(at, pairs_first, s)[::2] for s in range(5)] == [
        [0, 2],
        [1, 3],
        [4, 4],
        [1, 3],
        [0, 2],
    ]
    assert share_crossing(at, pairs_first) == 0


def test_every_group_has_a_place_of_its_own() -> None:
    for p, d in product(range(2, 9), range(1, 4)):
        at = {"p": p, "t": 1, "d": d, "g": 1}
        for places in (in_order(standard), in_order(pair_adjacent), pairs_first):
            taken = [node for stage in range(p) for node in nodes(at, places, stage)]
            assert sorted(taken) == list(range(p * d))
