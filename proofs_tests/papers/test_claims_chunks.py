"""What the claims of Figure 14 measure, counted another way."""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.tpipe.tpipe_schedules import (
    RECOMPUTED_1F1B,
    TPIPE,
    TRECOMP,
    TRECOMP_INTERLEAVED,
    kept,
    share,
)
from proofs_tests.papers.test_chunk_formulas import chunk_life, kept_limit


def test_what_is_kept_of_1f1b_is_its_share_of_p_stages() -> None:
    # p microbatches on rank 0, of which v - k of v parts stay; interleaved likewise, on its chunks.
    for v in (2, 3, 4):
        for k in range(1, v):
            at = {"p": 4, "m": 12, "v": v, "k": k}
            assert kept(RECOMPUTED_1F1B, at) == 4 * (v - k) == kept(TRECOMP_INTERLEAVED, at)


def test_what_trecomp_keeps_of_one_chunk_is_its_life_in_rounds() -> None:
    # All but the deepest recomputed. It lives 3p - 2 units, and 1 more for every recomputation that
    # its forward passes over on its p - 1 hops, v - 1 of v cells (Appendix C: ceil((p-1)/2) for
    # two); the backward's own 2 units count too. A round is 4v - 1.
    for p, v in ((4, 2), (8, 2), (4, 3), (8, 4)):
        at = {"p": p, "m": 3 * p, "v": v, "k": v - 1}
        passed = p - 1 - (p - 1) // v
        assert kept(TRECOMP, at) == -(-(chunk_life(p, v, v - 1) + passed + 2) // (4 * v - 1))


def test_shares_of_figure_14_come_from_above() -> None:
    for v in (2, 3, 4):
        shares = [share(TPIPE, {"p": p, "m": 3 * p, "v": v}) for p in (4, 8, 16)]
        assert all(each >= kept_limit(v) for each in shares)
        assert shares[-1] - kept_limit(v) < Fraction(1, 16)
