"""BPipe's count of evictions against exhaustive search; the places of pairs by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.bpipe.bpipe_claims import count, share_crossing
from bubbleproof.papers.bpipe.bpipe_schedules import evictions
from bubbleproof.papers.bpipe.bpipe_search import least_evictions
from bubbleproof.papers.bpipe.node_places import in_order, pair_adjacent
from bubbleproof.papers.bpipe.pair_placement import pair_placement
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


def test_an_odd_number_of_stages_moves_the_second_replica_off_the_pairs() -> None:
    # p = 5, t = 2, d = 2, nodes of 4: stages 0 and 4 of replica 0 are on GPUs 0 to 3, of replica 1
    # on GPUs 10 to 13, two of them on node 2 and two on node 3: one of the two pairs crosses.
    at = {"p": 5, "t": 2, "d": 2, "g": 4}
    one_by_one = share_crossing(lambda mesh: in_order(mesh, pair_adjacent(mesh.stages)))
    assert one_by_one(at) == Fraction(1, 2)
    planned = share_crossing(lambda mesh: pair_placement(mesh, 10).node)
    assert planned(at) == 0
    # Figure 5: s and 15 - s stand on two nodes of 8 in the order of their numbers.
    in_numbers = share_crossing(lambda mesh: in_order(mesh, range(mesh.stages)))
    assert in_numbers({"p": 16, "t": 1, "d": 1, "g": 8}) == 1
