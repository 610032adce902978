"""SVPP within f_max - 1: the certified optimum against bounds that a hand derives."""

from __future__ import annotations

import pytest

from bubbleproof.papers.mepipe.mepipe_svpp import PLAIN, least, one_less, table_3


@pytest.mark.parametrize(("m", "s"), [(2, 1), (3, 2), (4, 3), (7, 5)])
def test_two_ranks_with_room_for_one_sample_idle_twice_for_each(m: int, s: int) -> None:
    # p = 2, v = 1: f_max - 1 = s. A sample's last slice goes to rank 1 and comes back as the first
    # backward, 2 ticks later. Until then rank 0 holds all s of its slices and has no room, and what
    # came before it is done: rank 0 idles 2 ticks for each sample, beside 2s ticks of work.
    at = {"p": 2, "m": m, "v": 1, "s": s}
    assert one_less(at) == m * (2 * s + 2)


@pytest.mark.parametrize("p", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("m", [2, 3, 5, 9, 16])
def test_one_slice_and_one_chunk_wait_a_round_trip_for_every_p_minus_1(p: int, m: int) -> None:
    # Room for K = p-1 on rank 0. From 0Fj to the end of 0Bj lie 2p ticks at least, and 0F(j+K)
    # comes after it: K microbatches cost 2p ticks, where 2K would do; those left over 2 each.
    rounds, left = divmod(m - 1, p - 1)
    assert one_less({"p": p, "m": m, "v": 1, "s": 1}) == rounds * 2 * p + left * 2 + 2 * p


def test_a_unit_more_or_less_is_what_makes_the_difference() -> None:
    at = {"p": 3, "m": 3, "v": 1, "s": 1}
    assert at in PLAIN.points
    # f_max = 3: 1F1B's 2(3+2) = 10; with 2 one round trip more of 2; with 1 (below) 6 ticks each.
    assert [least(at, fewer) for fewer in (0, 1, 2)] == [10, 12, 18]
    assert table_3(at) == 10
