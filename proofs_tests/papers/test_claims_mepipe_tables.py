"""MEPipe's Tables 2, 5 and 8 and T-Pipe's section 6.3: the numbers once more by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.mepipe.mepipe_configurations import (
    TABLE_5,
    TABLE_8,
    bubble,
    mepipes,
    replicas,
)
from bubbleproof.papers.mepipe.mepipe_strategies import handed_on, sent
from bubbleproof.papers.tpipe.tpipe_claims import saved
from bubbleproof.papers.tpipe.tpipe_domains import BATCH_32

COLUMNS = ("system", "batch", "layers", "p", "c", "v", "again")


def cell(
    table: tuple[tuple[int, ...], ...], system: int, batch: int, layers: int
) -> dict[str, int]:
    row = next(row for row in table if row[:3] == (system, batch, layers))
    return dict(zip(COLUMNS, row, strict=True))


@pytest.mark.parametrize(
    ("table", "system", "batch", "layers", "idle"),
    [
        (TABLE_5, 0, 32, 40, "7/15"),  # DAPPLE: 64/16 = 4 replicas, n = 8: 7/(7+8)
        (TABLE_5, 1, 32, 40, "3/11"),  # VPP: 64/8 = 8 replicas, n = 4: 3/(3+4*2)
        (TABLE_5, 1, 64, 40, "3/11"),  # VPP: 16 replicas, n = 4
        (TABLE_5, 4, 32, 40, "7/23"),  # MEPipe: 8 replicas, n = 4, s = 4: 7/(7+16)
        (TABLE_5, 4, 64, 40, "7/39"),  # n = 8
        (TABLE_8, 1, 128, 32, "7/71"),  # VPP: 4 replicas, n = 32: 7/(7+64)
        (TABLE_8, 4, 128, 32, "7/71"),  # MEPipe: n = 16, s = 4
        (TABLE_8, 0, 128, 48, "15/79"),  # DAPPLE: 2 replicas, n = 64
    ],
)
def test_bubbles_of_configurations(
    table: tuple[tuple[int, ...], ...], system: int, batch: int, layers: int, idle: str
) -> None:
    # Table 3: (p-1)/(p-1+n) for DAPPLE, nv for VPP, ns for MEPipe; each was measured.
    assert bubble(cell(table, system, batch, layers)) == Fraction(idle)


def test_mepipes_cell_is_found_for_the_same_model_and_batch() -> None:
    at = cell(TABLE_5, 1, 32, 40)
    assert mepipes(at) == Fraction(7, 23) > bubble(at)
    assert replicas(cell(TABLE_5, 2, 32, 40)) == 2  # ZB: 64/(8*4)
    assert replicas(cell(TABLE_8, 4, 128, 48)) == 4  # MEPipe: 64/16, its slices take no devices


def test_bytes_of_strategies_by_hand() -> None:
    # Llama 13B, 38 layers on 8 stages, n = 64/4 = 16, two devices of TP or CP.
    at = {"p": 8, "x": 2, "d": 4, "batch": 64}
    hidden = 4096 * 5120
    assert sent("TP", at) == 4 * 2 * Fraction(1, 2) * 2 * hidden * Fraction(38, 8) * 16
    # Forward 2 (K, V), backward 2 again and their 2 gradients, half of each is another's.
    assert sent("CP", at) == (2 + 2 + 2) * Fraction(1, 2) * 2 * hidden * Fraction(38, 8) * 16
    assert sent("PP", at) == (2 + 2) * hidden * 16
    # 4 h^2 and 3 h ffn per layer, the vocabulary twice; 3/4 of 2 bytes each way.
    weights = 38 * (4 * 5120**2 + 3 * 5120 * 13824) + 2 * 32000 * 5120
    assert sent("DP", at) == 2 * 2 * Fraction(3, 4) * Fraction(weights, 8)


def test_slices_send_parts_of_what_samples_send() -> None:
    # p = 3, n = 3: 2 boundaries, 3 samples, both ways: 12 samples, in 24 halves.
    at = {"p": 3, "m": 3, "v": 1, "s": 2, "tF": 1, "tB": 1}
    assert handed_on("1f1b", at) == handed_on("svpp", at) == 12


def test_interleaved_with_recomputed_blocks_keeps_9_of_11_and_a_half() -> None:
    # p = 8, two chunks: p(v-1) + 2(p-1) + 1 = 23 units, half of each recomputed 11.5; T-Recomp
    # keeps chunk 2's 8 and the block it recomputes.
    assert saved(BATCH_32.points[0]) == 100 * (1 - Fraction(9) / Fraction(23, 2))
