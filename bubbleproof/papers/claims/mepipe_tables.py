"""MEPipe's evaluation: the bubble ratios of Tables 6 and 7, and recomputation.

Symbols of a case: p stages, ``d`` data-parallel replicas, ``c`` context-parallel size, ``batch``
the global batch size, ``printed`` the bubble ratio's digits after the point, ``digits`` how many.
A replica runs batch/d microbatches.

Table 6 is headed (PP, DP, CP) and contradicts itself so: its ratios then need n = 64/CP, section
7.3's "increasing PP adds less" fails, and its 6226.3 ms are 27 % more than Table 7 gives for the
same shape. Read as (PP, CP, DP), all three come out, and so it is read; the claims whose id ends in
``-header`` say what fails as headed. Table 7's own ratios follow from its header.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, Value
from bubbleproof.papers.claims.field_schedules import constant, idle_ratio, makespan, stated
from bubbleproof.papers.claims.mepipe_domains import is_every
from bubbleproof.papers.claims.mepipe_schedules import recomputed_work
from bubbleproof.papers.claims.scope import scope

_COLUMNS = ("p", "d", "c", "batch", "printed", "digits")


def _rows(text: str, *rows: tuple[int, ...]) -> Domain:
    return Domain(text=text, points=tuple(dict(zip(_COLUMNS, row, strict=True)) for row in rows))


_ROWS = ((2, 8, 4, 64, 111, 3), (4, 4, 4, 64, 15, 2), (8, 2, 4, 64, 18, 2))  # (PP, CP, DP)
TABLE_6 = _rows("the rows of Table 6, read as (PP, CP, DP)", *_ROWS)
AS_HEADED = _rows(
    "the rows of Table 6, read as (PP, DP, CP)", *((p, c, d, *rest) for p, d, c, *rest in _ROWS)
)
TABLE_7 = _rows(
    "the rows of Table 7",
    (8, 8, 1, 32, 636, 3), (8, 4, 2, 32, 467, 3), (8, 2, 4, 32, 304, 3),
)  # fmt: skip
LAST = Domain(text="the last row of Table 6, read as (PP, CP, DP)", points=TABLE_6.points[2:])
LAST_AS_HEADED = Domain(text="its last row, read as (PP, DP, CP)", points=AS_HEADED.points[2:])
# Iteration times in tenths of a millisecond: Table 6's last row, and Table 7's by (DP, CP).
LAST_TIME, TIMES_7 = 62263, {(8, 1): 36190, (4, 2): 31997, (2, 4): 37729}
RECOMPUTED = scope("tB = 2tF", is_every, ratios=((1, 2), (2, 4), (3, 6)))
CUT_OFF = "rounded or cut off, a number is less than one unit of its last digit away"


def dapple(at: Params) -> Fraction:
    """DAPPLE's idle ratio with the microbatches of a replica."""
    return idle_ratio("1f1b")({"p": at["p"], "m": at["batch"] // at["d"]})


def off(at: Params) -> Fraction:
    """How far the printed ratio is from the measured one, in units of its last digit."""
    unit: int = 10 ** at["digits"]
    return abs(at["printed"] - dapple(at) * unit)


def increment(table: Domain, row: int) -> Value:
    """What the doubling of the stages that leads to a row adds to DAPPLE's idle ratio."""
    return lambda _: dapple(table.points[row]) - dapple(table.points[row - 1])


def time_off(at: Params) -> Fraction:
    """How far Table 6's time is from Table 7's of the same shape, drawn out to twice the batch.

    Table 7's batch of 32 is half of it, so 1F1B's makespans say how much longer a step takes.
    """
    ticks = makespan("1f1b")
    whole, half = ({"p": at["p"], "m": batch // at["d"]} for batch in (at["batch"], 32))
    times = Fraction(TIMES_7[at["d"], at["c"]], LAST_TIME)
    return abs(times * ticks(whole) / ticks(half) - 1)


CLAIMS: tuple[Claim, ...] = (
    stated(
        "mepipe.table6.bubble",
        "MEPipe Table 6, read as (PP, CP, DP)",
        "DAPPLE's bubble ratios at batch size 64 are the printed 11.1%, 15% and 18% (15.8% is "
        "printed cut off).",
        "units of the last printed digit off",
        TABLE_6,
        constant(Fraction(1)),
        off,
        relation=Relation.AT_MOST,
        slack=CUT_OFF,
    ),
    stated(
        "mepipe.table6.bubble-header",
        "MEPipe Table 6, read as headed: (PP, DP, CP)",
        "DAPPLE's bubble ratios at batch size 64 are the printed 11.1%, 15% and 18%.",
        "units of the last printed digit off",
        AS_HEADED,
        constant(Fraction(1)),
        off,
        relation=Relation.AT_MOST,
        corrected="mepipe.table6.bubble",
    ),
    stated(
        "mepipe.table6.bubble-exact",
        "ours, for MEPipe Table 6, read as (PP, CP, DP)",
        "With n = 8, 16 and 32 they are 1/9, 3/19 and 7/39: n is 4p, and the ratio (p-1)/(5p-1).",
        "idle_ratio",
        TABLE_6,
        lambda at: Fraction(at["p"] - 1, 5 * at["p"] - 1),
        dapple,
    ),
    stated(
        "mepipe.table6.time-ratio",
        "MEPipe Tables 6 and 7, Table 6 read as (PP, CP, DP)",
        "Table 7's 3772.9 ms for 8 stages, DP 2 and CP 4 at batch size 32, drawn out by DAPPLE's "
        "39/23 to batch size 64, are Table 6's 6226.3 ms to within 3%.",
        "share off",
        LAST,
        constant(Fraction(3, 100)),
        time_off,
        relation=Relation.AT_MOST,
        slack="it is 2.7%",
    ),
    stated(
        "mepipe.table6.time-ratio-header",
        "MEPipe Tables 6 and 7, Table 6 read as headed: (PP, DP, CP)",
        "Table 7's 3199.7 ms for 8 stages, DP 4 and CP 2 at batch size 32, drawn out by DAPPLE's "
        "23/15 to batch size 64, are Table 6's 6226.3 ms to within 3%.",
        "share off",
        LAST_AS_HEADED,
        constant(Fraction(3, 100)),
        time_off,
        relation=Relation.AT_MOST,
        corrected="mepipe.table6.time-ratio",
    ),
    stated(
        "mepipe.table7.bubble",
        "MEPipe Table 7",
        "DAPPLE's bubble ratios at batch size 32 are 63.6%, 46.7% and 30.4%.",
        "idle_ratio, to three decimals",
        TABLE_7,
        lambda at: Fraction(at["printed"], 1000),
        dapple,
        relation=Relation.ABOUT,
        places=3,
    ),
    stated(
        "mepipe.section-7.3.increment",
        "MEPipe section 7.3, on Table 6 read as (PP, CP, DP)",
        "Doubling the stages to 8 adds less to the bubble ratio than doubling them to 4.",
        "difference of idle ratios",
        LAST,
        increment(TABLE_6, 1),
        increment(TABLE_6, 2),
        relation=Relation.AT_MOST,
        slack="it is less by far: 16/741 against 8/171",
    ),
    stated(
        "mepipe.section-7.3.increment-header",
        "MEPipe section 7.3, on Table 6 read as headed: (PP, DP, CP)",
        "Doubling the stages to 8 adds less to the bubble ratio than doubling them to 4.",
        "difference of idle ratios",
        LAST_AS_HEADED,
        increment(AS_HEADED, 1),
        increment(AS_HEADED, 2),
        relation=Relation.AT_MOST,
        corrected="mepipe.section-7.3.increment",
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
