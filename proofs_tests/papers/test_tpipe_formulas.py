"""T-Pipe's makespan and peaks: Appendix A against our schedules."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.tpipe.tpipe_formulas import (
    deep_peak,
    joint_peak,
    shallow_peak,
    tpipe_idle_ratio,
    tpipe_makespan,
)
from bubbleproof.theory.families.tpipe import TPipe
from proofs_tests.theory.members import measured
from proofs_tests.theory.test_tpipe import SMALL, alive


def test_the_makespan_is_that_of_appendix_a() -> None:
    # 2p of the first microbatch's forwards, a round of 6 for each other one, 4p of the last one's
    # backwards: 2p + 6(m-1) + 4p. Work is 6m on each of p ranks.
    for p, m in SMALL:
        got = measured(TPipe(), p=p, m=m)
        assert got.makespan == tpipe_makespan(p, m) == 2 * p + 6 * (m - 1) + 4 * p
        assert got.idle_ratio == tpipe_idle_ratio(p, m) == 1 - Fraction(6 * m, got.makespan)
        assert got.work == p * 6 * m


@pytest.mark.sweep
def test_the_makespan_is_that_of_appendix_a_on_large_shapes() -> None:
    for p in (17, 24, 31):
        for m in (1, 7, p, 3 * p):
            assert measured(TPipe(), p=p, m=m, tF=2, tB=4).makespan == 2 * tpipe_makespan(p, m)


def test_the_peaks_of_each_chunk_are_those_of_appendix_a() -> None:
    for p in range(1, 33):
        assert alive(p, (1,)) == deep_peak(p)
        assert alive(p, (0,)) == shallow_peak(p)


def test_the_joint_peak_is_one_less_than_the_sum_for_odd_ranks() -> None:
    # The smallest counterexample to the sum: p = 1, 2 + 1 = 3 printed, 2 there; next p = 3, 5.
    for p in range(1, 33):
        assert alive(p, (0, 1)) == joint_peak(p) == deep_peak(p) + shallow_peak(p) - p % 2
    for p in range(1, 9):
        peaks = measured(TPipe(), p=p, m=3 * p + 2).peak_activations
        assert max(peaks) == peaks[0] == joint_peak(p)


def test_three_quarters_is_a_limit_from_above() -> None:
    # x + y is less than (p-3)/6 + (2p-3)/6 + 2 - 1/3 (2p-3 is odd, so its ceiling gains at most
    # 5/6; the other 5/6), so the joint peak exceeds 3/4 of 2p by at most 3.
    shares = {p: Fraction(joint_peak(p), 2 * p) for p in range(1, 400)}
    assert shares[1] == shares[2] == 1
    assert (shares[4], shares[8]) == (Fraction(7, 8), Fraction(13, 16))
    assert all(
        Fraction(3, 4) < share <= Fraction(3, 4) + Fraction(3, 2 * p) for p, share in shares.items()
    )
