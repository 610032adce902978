"""The cells of MEPipe's Tables 5 and 8, and the bubble ratios of their configurations.

A case is a cell: ``system`` counts SYSTEMS from 0, ``batch`` is the global batch size, ``layers``
the layers with embedding and head; p, ``c``, v, ``again`` are the tuple's elements, PP, CP or SPP,
VP and whether activations are recomputed (1) or not (0). SPP takes no devices, so d = 64/p replicas
of MEPipe and 64/(pc) of the others run n = batch/d microbatches each. Bubble ratios are those of
schedules at tF = tB, as in Table 3.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 7.1, 7.2 and 7.4, Tables 4, 5 and 8.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Domain, Params
from bubbleproof.papers.claims.field_schedules import idle_ratio, peak_of_a

SYSTEMS = ("DAPPLE", "VPP", "ZB", "ZBV", "MEPipe")
FAMILIES = {0: "1f1b", 1: "interleaved", 4: "svpp"}
GPUS, MEPIPE = 64, 4
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


def _cells(text: str, rows: tuple[tuple[int, ...], ...]) -> Domain:
    points = (dict(zip(_COLUMNS, row, strict=True)) for row in sorted(set(rows), key=sum))
    return Domain(text=text, points=tuple(points))


def _of(text: str, systems: tuple[int, ...], layers: int, batches: tuple[int, ...]) -> Domain:
    chosen = (r for r in (*TABLE_5, *TABLE_8) if r[0] in systems and r[2] == layers)
    return _cells(text, tuple(row for row in chosen if row[1] in batches))


CELLS = _cells("every cell of Tables 5 and 8", (*TABLE_5, *TABLE_8))
VPPS = _cells("VPP's cells", tuple(row for row in (*TABLE_5, *TABLE_8) if row[0] == 1))
COLUMN = _cells("Llama 13B's column of Table 8", tuple(row for row in TABLE_8 if row[2] == 40))
COLUMN_BUT_ZBV = _cells(
    "Llama 13B's column of Table 8 but ZBV", tuple(r for r in TABLE_8 if r[2] == 40 and r[0] != 3)
)
SMALL_BATCHES = _of("DAPPLE and VPP of Table 5 at 32 and 64", (0, 1), 40, (32, 64))
BUT_VPP_32 = _cells(
    "DAPPLE and VPP of Table 5, but VPP at 32",
    tuple(row for row in TABLE_5 if row[0] in (0, 1) and row[:2] != (1, 32)),
)
SMALLEST = _of("DAPPLE and VPP of Table 8 on Llama 7B", (0, 1), 32, (128,))
LARGEST = _of("DAPPLE of Table 8 on Llama 34B", (0,), 48, (128,))
BATCHES = Domain(
    text="DAPPLE on 8 stages, global batch sizes 32 and 64", points=({"batch": 32}, {"batch": 64})
)
GROWN = Domain(
    text="DAPPLE on 8 stages without CP, global batch sizes 64 and 128",
    points=({"batch": 64}, {"batch": 128}),
)


def replicas(at: Params) -> Fraction:
    """64/(pc), for MEPipe 64/p."""
    return Fraction(GPUS, at["p"] if at["system"] == MEPIPE else at["p"] * at["c"])


def bubble(at: Params) -> Fraction:
    """The system's bubble ratio, of DAPPLE, VPP or MEPipe."""
    shape = {"p": at["p"], "m": int(at["batch"] / replicas(at)), "v": at["v"], "tF": 1, "tB": 1}
    if at["system"] == MEPIPE:
        shape["s"] = at["c"]
    return idle_ratio(FAMILIES[at["system"]])(shape)


def mepipes(at: Params) -> Fraction:
    """MEPipe's bubble ratio for the same model and batch."""
    rows = (dict(zip(_COLUMNS, row, strict=True)) for row in (*TABLE_5, *TABLE_8))
    same = ("batch", "layers")
    found = (r for r in rows if r["system"] == MEPIPE and all(r[n] == at[n] for n in same))
    return bubble(next(found))


def is_lower(at: Params) -> Fraction:
    """1 where MEPipe's bubble ratio is below the system's."""
    return Fraction(mepipes(at) < bubble(at))


def cell(table: tuple[tuple[int, ...], ...], at: Params) -> Fraction:
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
