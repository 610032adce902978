"""MEPipe's evaluation: the bubble ratios of Tables 6 and 7, and recomputation.

Symbols of a case: p stages, ``d`` data-parallel replicas, ``c`` context-parallel size, ``batch``
the global batch size, ``mille`` the printed bubble ratio in thousandths. A replica runs batch/d
microbatches.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.theory.claims.claim import Claim, Domain, Params, Relation, Value
from bubbleproof.theory.claims.field_schedules import constant, idle_ratio, stated
from bubbleproof.theory.claims.mepipe_domains import is_every
from bubbleproof.theory.claims.mepipe_schedules import recomputed_work
from bubbleproof.theory.claims.scope import scope

_COLUMNS = ("p", "d", "c", "batch", "mille")


def _rows(text: str, *rows: tuple[int, ...]) -> Domain:
    return Domain(text=text, points=tuple(dict(zip(_COLUMNS, row, strict=True)) for row in rows))


TABLE_6 = _rows("the rows of Table 6", (2, 4, 8, 64, 111), (4, 4, 4, 64, 150), (8, 4, 2, 64, 180))
TABLE_6_ENDS = _rows(
    "the first and the last row of Table 6", *(tuple(row.values()) for row in TABLE_6.points[::2])
)
TABLE_7 = _rows("the rows of Table 7", (8, 8, 1, 32, 636), (8, 4, 2, 32, 467), (8, 2, 4, 32, 304))
STEP = Domain(text="p from 4 to 8 at n = 64/4", points=({"p": 8, "m": 16},))
STEPS = Domain(
    text="p of 4, 8, 16 at n = 64/4", points=tuple({"p": p, "m": 16} for p in (4, 8, 16))
)
RECOMPUTED = scope("tB = 2tF", is_every, ratios=((1, 2), (2, 4), (3, 6)))


def printed(at: Params) -> Fraction:
    """The table's ratio."""
    return Fraction(at["mille"], 1000)


def dapple(divisor: str) -> Value:
    """DAPPLE's idle ratio with as many microbatches as the batch holds multiples of ``divisor``."""
    return lambda at: idle_ratio("1f1b")({"p": at["p"], "m": at["batch"] // at[divisor]})


def increment(at: Params) -> Fraction:
    """What doubling the stages to p adds to DAPPLE's idle ratio."""
    return idle_ratio("1f1b")(at) - idle_ratio("1f1b")({**at, "p": at["p"] // 2})


CLAIMS: tuple[Claim, ...] = (
    stated(
        "mepipe.table6.bubble",
        "MEPipe Table 6",
        "DAPPLE's bubble ratios at batch size 64 are 11.1%, 15% and 18%.",
        "idle_ratio, to two decimals",
        TABLE_6,
        printed,
        dapple("d"),
        relation=Relation.ABOUT,
        corrected="mepipe.table6.bubble-corrected",
        places=2,
    ),
    stated(
        "mepipe.table6.bubble-corrected",
        "ours, for MEPipe Table 6",
        "With n = 64/4 in every row they are 1/17, 3/19 and 7/23: 5.9%, 15.8% and 30.4%.",
        "idle_ratio",
        TABLE_6,
        lambda at: Fraction(at["p"] - 1, at["p"] - 1 + 16),
        dapple("d"),
    ),
    stated(
        "mepipe.table6.context-parallel",
        "ours, for MEPipe Table 6",
        "The printed 11.1% and 18% are those of n = 64/CP, the batch divided by the wrong column "
        "(the middle row, 15.8%, is printed as 15%).",
        "idle_ratio, to two decimals",
        TABLE_6_ENDS,
        printed,
        dapple("c"),
        relation=Relation.ABOUT,
        places=2,
    ),
    stated(
        "mepipe.table7.bubble",
        "MEPipe Table 7",
        "DAPPLE's bubble ratios at batch size 32 are 63.6%, 46.7% and 30.4%.",
        "idle_ratio, to three decimals",
        TABLE_7,
        printed,
        dapple("d"),
        relation=Relation.ABOUT,
        places=3,
    ),
    stated(
        "mepipe.section-7.3.increment",
        "MEPipe section 7.3, on Table 6",
        "Each doubling of the stages adds less to the bubble ratio than the one before.",
        "difference of idle ratios",
        STEP,
        lambda at: increment({**at, "p": at["p"] // 2}),
        increment,
        relation=Relation.AT_MOST,
        corrected="mepipe.section-7.3.increment-corrected",
    ),
    stated(
        "mepipe.section-7.3.increment-corrected",
        "ours, for MEPipe section 7.3",
        "With n = 16 each doubling up to 16 stages adds more than the one before.",
        "difference of idle ratios",
        STEPS,
        lambda at: increment({**at, "p": at["p"] // 2}),
        increment,
        relation=Relation.AT_LEAST,
    ),
    stated(
        "mepipe.section-7.3.recomputation",
        "MEPipe section 7.3",
        "Full recomputation costs 33% more computation.",
        "extra work over work, to two decimals",
        RECOMPUTED,
        constant(Fraction(33, 100)),
        recomputed_work,
        relation=Relation.ABOUT,
        places=2,
    ),
)
