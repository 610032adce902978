"""MEPipe's Tables 5 and 8: what follows from the configurations of each system (``mepipe_cells``).

Which configuration is best, and which runs out of memory, was measured on machines.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 7.1, 7.2 and 7.4, Tables 5 and 8.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Relation
from bubbleproof.papers.claims.field_schedules import constant, stated
from bubbleproof.papers.claims.mepipe_cells import (
    BATCHES,
    BUT_VPP_32,
    CELLS,
    COLUMN,
    COLUMN_BUT_ZBV,
    GROWN,
    LARGEST,
    SMALL_BATCHES,
    SMALLEST,
    TABLE_5,
    TABLE_8,
    VPPS,
    bubble,
    cell,
    dapple_gain,
    dapple_peak,
    is_lower,
    mepipes,
    replicas,
)
from bubbleproof.papers.claims.tpipe_statement import missing

ONE = constant(Fraction(1))
_COUNTS: tuple[Claim, ...] = (
    stated(
        "mepipe.table5.replicas",
        "MEPipe section 7.1, Tables 5 and 8",
        "Every configuration has at least two replicas.",
        "data-parallel size",
        CELLS,
        constant(Fraction(2)),
        replicas,
        relation=Relation.AT_LEAST,
    ),
    stated(
        "mepipe.table5.layers",
        "MEPipe section 7.2, Tables 5 and 8",
        "Every configuration cuts the layers, embedding and head among them, evenly.",
        "layers left over",
        CELLS,
        constant(Fraction(0)),
        lambda at: Fraction(at["layers"] % (at["p"] * at["v"])),
    ),
    stated(
        "mepipe.table5.vpp",
        "MEPipe Tables 3, 5 and 8",
        "VPP's configurations give every pipeline a multiple of p samples, as VPP needs.",
        "samples left over",
        VPPS,
        constant(Fraction(0)),
        lambda at: at["batch"] / replicas(at) % at["p"],
    ),
    stated(
        "mepipe.table8.column",
        "MEPipe Tables 5 and 8",
        "Table 8's column of Llama 13B is Table 5's at global batch size 128.",
        "the tuple as a number, 0 for out of memory",
        COLUMN,
        lambda at: cell(TABLE_5, at),
        lambda at: cell(TABLE_8, at),
        corrected="mepipe.table8.column-others",
    ),
    stated(
        "mepipe.table8.column-others",
        "ours, for MEPipe Tables 5 and 8",
        "It is but for ZBV, which Table 5 has out of memory and Table 8 runs as (4, 8, 2).",
        "the tuple as a number, 0 for out of memory",
        COLUMN_BUT_ZBV,
        lambda at: cell(TABLE_5, at),
        lambda at: cell(TABLE_8, at),
    ),
)
_BUBBLES: tuple[Claim, ...] = (
    stated(
        "mepipe.section-7.2.bubble",
        "MEPipe section 7.2, Table 5",
        "At global batch sizes 64 and 32 MEPipe's bubble ratio is below DAPPLE's and VPP's.",
        "1 where it is",
        SMALL_BATCHES,
        ONE,
        is_lower,
        corrected="mepipe.section-7.2.bubble-others",
    ),
    stated(
        "mepipe.section-7.2.bubble-others",
        "ours, for MEPipe section 7.2",
        "It is, at 128 too, but for VPP at 32: 4 stages and 4 samples of 2 chunks idle 3/11, "
        "MEPipe's 8 stages and 4 samples of 4 slices 7/23.",
        "1 where it is",
        BUT_VPP_32,
        ONE,
        is_lower,
    ),
    stated(
        "mepipe.section-7.2.context",
        "MEPipe section 7.2",
        "At small global batch sizes CP's reduction of DAPPLE's bubble ratio is larger: more than "
        "at twice the size.",
        "1 where it is",
        BATCHES,
        ONE,
        lambda at: Fraction(dapple_gain(at["batch"]) > dapple_gain(2 * at["batch"])),
    ),
    stated(
        "mepipe.section-7.2.activations",
        "MEPipe section 7.2",
        "At global batch sizes 64 and 128 activations take more than at 32: A, not A/2 (DAPPLE, 8 "
        "stages, no CP).",
        "peak activations over those at 32",
        GROWN,
        constant(Fraction(2)),
        lambda at: dapple_peak(at["batch"]) / dapple_peak(32),
    ),
    stated(
        "mepipe.section-7.4.smallest",
        "MEPipe section 7.4, Table 8",
        "On Llama 7B MEPipe's bubble ratio is smaller than DAPPLE's and VPP's.",
        "1 where it is",
        SMALLEST,
        ONE,
        is_lower,
        corrected="mepipe.section-7.4.smallest-equal",
    ),
    stated(
        "mepipe.section-7.4.smallest-equal",
        "ours, for MEPipe section 7.4",
        "It is no larger; VPP's 8 stages and 32 samples of 2 chunks idle 7/71 as MEPipe's 16 "
        "samples of 4 slices do.",
        "bubble ratio of MEPipe",
        SMALLEST,
        bubble,
        mepipes,
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-7.4.largest",
        "MEPipe section 7.4, Table 8",
        "On Llama 34B MEPipe's bubble ratio is low: 15/527, of DAPPLE's 15/79.",
        "bubble ratio over DAPPLE's",
        LARGEST,
        constant(Fraction(15, 527) / Fraction(15, 79)),
        lambda at: mepipes(at) / bubble(at),
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *_COUNTS,
    *_BUBBLES,
    missing(
        "mepipe.table5.best",
        "Tables 5 and 8",
        "Which configuration of each system is fastest.",
        "the iteration times of the other configurations that the grid search tried",
    ),
    missing(
        "mepipe.table5.memory",
        "Tables 5 and 8",
        "Which configurations run out of memory, and where recomputation is needed.",
        "bytes of activations, workspace and what the framework reserves, on 24 GB",
    ),
)
