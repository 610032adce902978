"""MEPipe's Table 2 and T-Pipe's section 6.3: the numbers once more by hand."""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.mepipe.mepipe_svpp import handed_on
from bubbleproof.papers.tpipe.tpipe_claims import saved
from bubbleproof.papers.tpipe.tpipe_domains import BATCH_32


def test_slices_send_parts_of_what_samples_send() -> None:
    # p = 3, n = 3: 2 boundaries, 3 samples, both ways: 12 samples, in 24 halves.
    at = {"p": 3, "m": 3, "v": 1, "s": 2, "tF": 1, "tB": 1}
    assert handed_on("1f1b", at) == handed_on("svpp", at) == 12


def test_interleaved_with_recomputed_blocks_keeps_9_of_11_and_a_half() -> None:
    # p = 8, two chunks: p(v-1) + 2(p-1) + 1 = 23 units, half of each recomputed 11.5; T-Recomp
    # keeps chunk 2's 8 and the block it recomputes.
    assert saved(BATCH_32.points[0]) == 100 * (1 - Fraction(9) / Fraction(23, 2))
