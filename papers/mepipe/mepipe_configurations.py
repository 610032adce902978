"""MEPipe's Tables 5 and 8: what follows from the configurations of each system.

A case is a cell: ``system`` counts SYSTEMS from 0, ``batch`` is the global batch size, ``layers``
the layers with embedding and head; p, ``c``, v, ``again`` are the tuple's elements, PP, CP or SPP,
VP and whether activations are recomputed (1) or not (0). SPP takes no devices, so d = 64/p replicas
of MEPipe and 64/(pc) of the others run n = batch/d microbatches each. Bubble ratios are those of
schedules at tF = tB, as in Table 3, or with weight gradients apart, as MEPipe runs (section 5), at
tF = tI = tW and tB = 2 tF. Which configuration is best, and which runs out of memory, was
measured on machines.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 7.1, 7.2 and 7.4, Tables 4, 5 and 8.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import (
    PaperClaim,
    contradicting,
    missing,
    read_as,
    reading,
    stated,
)
from bubbleproof.papers.claims.domain import CaseValues, Domain, Params, domain
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, peak_of_a

ConfigurationTable = tuple[CaseValues, ...]
SYSTEMS = ("DAPPLE", "VPP", "ZB", "ZBV", "MEPipe")
FAMILIES = {0: "1f1b", 1: "interleaved", 4: "svpp"}
GPUS, MEPIPE = 64, 4
AS_RUN, BY_TABLE_3 = "as MEPipe runs, weight gradients apart", "SVPP alone, as in Table 3"
SECTION_5 = "section 5: MEPipe computes weight gradients apart; of one length with the rest"
_COLUMNS = ("system", "batch", "layers", "p", "c", "v", "again")
# Table 5, Llama 13B; no row for ZBV at 128, which is out of memory there.
TABLE_5 = (
    (0, 32, 40, 8, 2, 1, 0), (0, 64, 40, 8, 2, 1, 0), (0, 128, 40, 8, 2, 1, 0),
    (1, 32, 40, 4, 2, 2, 1), (1, 64, 40, 4, 1, 2, 1), (1, 128, 40, 4, 1, 2, 1),
    (2, 32, 40, 8, 4, 1, 0), (2, 64, 40, 8, 4, 1, 0), (2, 128, 40, 8, 4, 1, 0),
    (3, 32, 40, 4, 8, 2, 0), (3, 64, 40, 4, 8, 2, 0),
    (4, 32, 40, 8, 4, 1, 0), (4, 64, 40, 8, 4, 1, 0), (4, 128, 40, 8, 4, 1, 0),
)  # fmt: skip
# Table 8 at global batch size 128: Llama 7B, 13B and 34B.
TABLE_8 = (
    (0, 128, 32, 16, 1, 1, 0), (0, 128, 40, 8, 2, 1, 0), (0, 128, 48, 16, 2, 1, 1),
    (1, 128, 32, 8, 2, 2, 0), (1, 128, 40, 4, 1, 2, 1),
    (2, 128, 32, 16, 1, 1, 0), (2, 128, 40, 8, 4, 1, 0),
    (3, 128, 32, 8, 2, 2, 0), (3, 128, 40, 4, 8, 2, 0),
    (4, 128, 32, 8, 4, 1, 0), (4, 128, 40, 8, 4, 1, 0), (4, 128, 48, 16, 16, 1, 0),
)  # fmt: skip


EITHER = tuple(dict.fromkeys((*TABLE_5, *TABLE_8)))


def _cells(text: str, where: str = "True", table: ConfigurationTable = EITHER) -> Domain:
    """The cells that ``where`` accepts, as rows of the table."""
    return domain(text, {"_".join(_COLUMNS): table}, where=where)


CELLS = _cells("every cell of Tables 5 and 8")
VPPS = _cells("VPP's cells", "system == 1")
COLUMN = _cells("Llama 13B's column of Table 8", "layers == 40", TABLE_8)
COLUMN_BUT_ZBV = _cells(
    "Llama 13B's column of Table 8 but ZBV", "layers == 40 and system != 3", TABLE_8
)
SMALL_BATCHES = _cells(
    "DAPPLE and VPP of Table 5 at 32 and 64", "system <= 1 and batch in (32, 64) and layers == 40"
)
SMALLEST = _cells(
    "DAPPLE and VPP of Table 8 on Llama 7B", "system <= 1 and batch == 128 and layers == 32"
)
LARGEST = _cells("DAPPLE of Table 8 on Llama 34B", "system == 0 and batch == 128 and layers == 48")
BATCHES = domain("DAPPLE on 8 stages, global batch sizes 32 and 64", batch=(32, 64))
GROWN = domain("DAPPLE on 8 stages without CP, global batch sizes 64 and 128", batch=(64, 128))


def replicas(at: Params) -> Fraction:
    """64/(pc), for MEPipe 64/p."""
    return Fraction(GPUS, at["p"] if at["system"] == MEPIPE else at["p"] * at["c"])


def _shape(at: Params) -> dict[str, int]:
    """The pipeline of a cell; slices are MEPipe's alone."""
    shape = {"p": at["p"], "m": int(at["batch"] / replicas(at)), "v": at["v"]}
    return {**shape, "s": at["c"]} if at["system"] == MEPIPE else shape


def bubble(at: Params, backward: int = 1) -> Fraction:
    """The system's bubble ratio, of DAPPLE, VPP or MEPipe, at tF = 1."""
    return idle_ratio(FAMILIES[at["system"]])({**_shape(at), "tF": 1, "tB": backward})


def _mepipes(at: Params) -> Params:
    """MEPipe's cell for the same model and batch."""
    rows = (dict(zip(_COLUMNS, row, strict=True)) for row in EITHER)
    same = ("batch", "layers")
    return next(r for r in rows if r["system"] == MEPIPE and all(r[n] == at[n] for n in same))


def mepipes(at: Params) -> Fraction:
    """MEPipe's bubble ratio for the same model and batch."""
    return bubble(_mepipes(at))


def _mepipes_shape(at: Params) -> Params:
    return {**_shape(_mepipes(at)), "tF": 1, "tI": 1, "tW": 1}


def is_lower(at: Params) -> Fraction:
    """1 where MEPipe's bubble ratio is below the system's."""
    return Fraction(mepipes(at) < bubble(at))


def is_lower_apart(at: Params) -> Fraction:
    """1 where it is with MEPipe's weight gradients apart, at tF = tI = tW for every system."""
    return Fraction(idle_ratio("svpp-w")(_mepipes_shape(at)) < bubble(at, backward=2))


def cell(table: ConfigurationTable, at: Params) -> Fraction:
    """PP, CP, VP and recomputation as one number; 0 where the table has no such tuple."""
    key = tuple(at[name] for name in _COLUMNS[:3])
    row = next((row for row in table if row[:3] == key), (0,) * 7)
    p, c, v, again = row[3:]
    return Fraction(((p * 100 + c) * 100 + v) * 10 + again)


def dapple_gain(batch: int) -> Fraction:
    """What CP of 2 in place of 1 takes off DAPPLE's bubble ratio on 8 stages of 64 devices."""
    one, two = (idle_ratio("1f1b")({"p": 8, "m": batch * 8 * c // GPUS}) for c in (1, 2))
    return one - two


def dapple_peak(batch: int) -> Fraction:
    """DAPPLE's activations over A on 8 stages of 64 devices without CP."""
    return peak_of_a("1f1b")({"p": 8, "m": batch * 8 // GPUS})


_COUNTS: tuple[PaperClaim, ...] = (
    stated("mepipe.table5.replicas", "section 7.1, Tables 5 and 8",
           "Every configuration has at least two replicas.", "data-parallel size", replicas, ">=",
           2, CELLS),
    stated("mepipe.table5.layers", "section 7.2, Tables 5 and 8",
           "Every configuration cuts the layers, embedding and head among them, evenly.",
           "layers left over", "layers % (p*v)", "==", 0, CELLS),
    stated("mepipe.table5.vpp", "Tables 3, 5 and 8",
           "VPP's configurations give every pipeline a multiple of p samples, as VPP needs.",
           "samples left over", lambda at: at["batch"] / replicas(at) % at["p"], "==", 0, VPPS),
    contradicting("mepipe.table8.column", "Table 5", lambda at: cell(TABLE_5, at), "Table 8",
                  lambda at: cell(TABLE_8, at),
                  "Table 8's column of Llama 13B is Table 5's at global batch size 128 (Table 8 "
                  'calls ZBV "ZBV-ZB", section 7.4 ZBV and one of the systems above).',
                  "the tuple as a number, 0 for out of memory", COLUMN),
    stated("mepipe.table8.column-others", "ours, for MEPipe Tables 5 and 8",
           "It is but for ZBV, which Table 5 has out of memory and Table 8 runs as (4, 8, 2).",
           "the tuple as a number, 0 for out of memory", lambda at: cell(TABLE_8, at), "==",
           lambda at: cell(TABLE_5, at), COLUMN_BUT_ZBV),
)  # fmt: skip
_BUBBLES: tuple[PaperClaim, ...] = (
    read_as("mepipe.section-7.2.bubble", "section 7.2, Table 5",
            "At global batch sizes 64 and 32 MEPipe's bubble ratio is below DAPPLE's and VPP's.",
            "1 where it is", (
                reading(AS_RUN, SECTION_5, is_lower_apart, "==", 1, SMALL_BATCHES),
                reading(BY_TABLE_3, "section 7.2: by SVPP's schedule of slices", is_lower, "==", 1,
                        SMALL_BATCHES),
            )),
    stated("mepipe.section-7.2.context", "section 7.2",
           "At small global batch sizes CP's reduction of DAPPLE's bubble ratio is larger: more "
           "than at twice the size.", "1 where it is",
           lambda at: dapple_gain(at["batch"]) > dapple_gain(2 * at["batch"]), "==", 1, BATCHES),
    stated("mepipe.section-7.2.activations", "section 7.2",
           "At global batch sizes 64 and 128 activations take more than at 32: A, not A/2 (DAPPLE, "
           "8 stages, no CP).", "peak activations over those at 32",
           lambda at: dapple_peak(at["batch"]) / dapple_peak(32), "==", 2, GROWN),
    read_as("mepipe.section-7.4.smallest", "section 7.4, Table 8",
            "On Llama 7B MEPipe's bubble ratio is smaller than DAPPLE's and VPP's.",
            "1 where it is", (
                reading(AS_RUN, SECTION_5, is_lower_apart, "==", 1, SMALLEST),
                reading(BY_TABLE_3, "Table 3", is_lower, "==", 1, SMALLEST),
            )),
    stated("mepipe.section-7.4.largest", "section 7.4, Table 8",
           "On Llama 34B MEPipe's bubble ratio is low: 15/527, of DAPPLE's 15/79.",
           "bubble ratio over DAPPLE's", lambda at: mepipes(at) / bubble(at), "==",
           "15/527 / (15/79)", LARGEST),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (
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
        estimated="static memory by section 4.5's model (mepipe.section-4.5.static)",
    ),
)
