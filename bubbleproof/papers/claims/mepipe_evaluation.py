"""MEPipe's evaluation: bubble ratios of Tables 6 and 7, recomputation, stage limits, speedups.

Symbols of a case: p stages, ``d`` data-parallel replicas, ``c`` context-parallel size, ``batch``
the global batch size, ``printed`` the bubble ratio's digits after the point, ``digits`` how many.
A replica runs batch/d microbatches.

Table 6 is headed (PP, DP, CP) and contradicts itself so: its ratios then need n = 64/CP, section
7.3's "increasing PP adds less" fails, and its 6226.3 ms are 27 % more than Table 7 gives for the
same shape. Read as (PP, CP, DP), all three come out, and so it is read; the claims whose id ends in
``-header`` say what fails as headed. Table 7's own ratios follow from its header. Iteration times
were measured on machines; claims on them name what is missing.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Value, missing, stated
from bubbleproof.papers.claims.domain import Domain, Params, Row, case, domain, scope
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, makespan
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute

COLUMNS = ("p", "d", "c", "batch", "printed", "digits")
ROWS_6 = ((2, 8, 4, 64, 111, 3), (4, 4, 4, 64, 15, 2), (8, 2, 4, 64, 18, 2))  # (PP, CP, DP)
HEADED_6 = tuple((p, c, d, *rest) for p, d, c, *rest in ROWS_6)
ROWS_7 = ((8, 8, 1, 32, 636, 3), (8, 4, 2, 32, 467, 3), (8, 2, 4, 32, 304, 3))


def _rows(text: str, rows: Sequence[Row]) -> Domain:
    return domain(text, {"_".join(COLUMNS): rows}, as_printed=True)


TABLE_6 = _rows("the rows of Table 6, read as (PP, CP, DP)", ROWS_6)
AS_HEADED = _rows("the rows of Table 6, read as (PP, DP, CP)", HEADED_6)
TABLE_7 = _rows("the rows of Table 7", ROWS_7)
LAST = _rows("the last row of Table 6, read as (PP, CP, DP)", ROWS_6[2:])
LAST_AS_HEADED = _rows("its last row, read as (PP, DP, CP)", HEADED_6[2:])
# Iteration times in tenths of a millisecond: Table 6's last row, and Table 7's by (DP, CP).
LAST_TIME, TIMES_7 = 62263, {(8, 1): 36190, (4, 2): 31997, (2, 4): 37729}
RECOMPUTED = scope("tB = 2tF", ratios=((1, 2), (2, 4), (3, 6)))
CUT_OFF = "rounded or cut off, a number is less than one unit of its last digit away"


def dapple(at: Params) -> Fraction:
    """DAPPLE's idle ratio with the microbatches of a replica."""
    return idle_ratio("1f1b")({"p": at["p"], "m": at["batch"] // at["d"]})


def off(at: Params) -> Fraction:
    """How far the printed ratio is from the measured one, in units of its last digit."""
    unit: int = 10 ** at["digits"]
    return abs(at["printed"] - dapple(at) * unit)


def increment(before: Row, after: Row) -> Value:
    """What the doubling of the stages from one row to the next adds to DAPPLE's idle ratio."""
    one, other = (dict(zip(COLUMNS, row, strict=True)) for row in (before, after))
    return lambda _: dapple(other) - dapple(one)


def time_off(at: Params) -> Fraction:
    """How far Table 6's time is from Table 7's of the same shape, drawn out to twice the batch.

    Table 7's batch of 32 is half of it, so 1F1B's makespans say how much longer a step takes.
    """
    ticks = makespan("1f1b")
    whole, half = ({"p": at["p"], "m": batch // at["d"]} for batch in (at["batch"], 32))
    times = Fraction(TIMES_7[at["d"], at["c"]], LAST_TIME)
    return abs(times * Fraction(ticks(whole)) / ticks(half) - 1)


def recomputed_work(at: Params) -> Fraction:
    """The extra computation when all forwards are run again, over the computation without."""
    member = made("1f1b", at)
    stages = tuple(range(at["p"]))
    again = with_recompute(member.problem, Recompute(stages=stages))
    return Fraction(int(again.duration.sum()), int(member.problem.duration.sum())) - 1


LLAMA_13B = case("40 layers on 64 devices", layers=40, gpus=64)
LLAMA_34B = case("48 layers on 64 devices", layers=48, gpus=64)
SPEEDUPS = domain(
    "section 7.2's speedups in hundredths, by global batch size",
    batch_speedup=((128, 136), (64, 149), (32, 186)),
)
ONE = "one measurement"


def _even_cuts(at: Params) -> list[tuple[int, int]]:
    """(stages, 2 or more chunks per stage) that cut the layers evenly; the stages divide gpus."""
    layers, gpus = at["layers"], at["gpus"]
    return [
        (p, v)
        for p in range(1, gpus + 1)
        for v in range(2, layers + 1)
        if gpus % p == 0 and layers % (p * v) == 0
    ]


def most_stages(at: Params) -> int:
    """The most stages of an even cut with two or more chunks each."""
    return max(p for p, _ in _even_cuts(at))


def most_stages_in_pairs(at: Params) -> int:
    """The most stages of an even cut with two chunks each."""
    return max(p for p, v in _even_cuts(at) if v == 2)


def most_chunks(at: Params) -> int:
    """The most chunks of an even cut."""
    return max(p * v for p, v in _even_cuts(at))


_CUTS: tuple[Claim, ...] = tuple(
    claim
    for where, model, domain, stages in (
        ("7.2", "Llama 13B with 40 layers", LLAMA_13B, 4),
        ("7.4", "Llama 34B with 48 layers", LLAMA_34B, 8),
    )
    for claim in (
        stated(f"mepipe.section-{where}.vpp-stages", f"section {where}",
               f"VPP cuts {model} evenly into at most {stages} stages.", "stages", most_stages,
               "==", stages, domain, f"section-{where}.two-chunks"),
        stated(f"mepipe.section-{where}.two-chunks", f"ours, for MEPipe section {where}",
               f"With two chunks per stage, as ZBV has, {model} allows at most {stages} stages; "
               "VPP may have more chunks and more stages.", "stages", most_stages_in_pairs, "==",
               stages, domain),
    )
)  # fmt: skip


_TABLES = (
    stated("mepipe.table6.bubble", "Table 6, read as (PP, CP, DP)",
           "DAPPLE's bubble ratios at batch size 64 are the printed 11.1%, 15% and 18% (15.8% is "
           "printed cut off).", "units of the last printed digit off", off, "<=", 1, TABLE_6,
           slack=CUT_OFF),
    stated("mepipe.table6.bubble-header", "Table 6, read as headed: (PP, DP, CP)",
           "DAPPLE's bubble ratios at batch size 64 are the printed 11.1%, 15% and 18%.",
           "units of the last printed digit off", off, "<=", 1, AS_HEADED, "table6.bubble"),
    stated("mepipe.table6.bubble-exact", "ours, for MEPipe Table 6, read as (PP, CP, DP)",
           "With n = 8, 16 and 32 they are 1/9, 3/19 and 7/39: n is 4p, and the ratio "
           "(p-1)/(5p-1).", "idle_ratio", dapple, "==", "(p-1)/(5*p - 1)", TABLE_6),
    stated("mepipe.table6.time-ratio", "Tables 6 and 7, Table 6 read as (PP, CP, DP)",
           "Table 7's 3772.9 ms for 8 stages, DP 2 and CP 4 at batch size 32, drawn out by "
           "DAPPLE's 39/23 to batch size 64, are Table 6's 6226.3 ms to within 3%.", "share off",
           time_off, "<=", "0.03", LAST, slack="it is 2.7%"),
    stated("mepipe.table6.time-ratio-header",
           "Tables 6 and 7, Table 6 read as headed: (PP, DP, CP)",
           "Table 7's 3199.7 ms for 8 stages, DP 4 and CP 2 at batch size 32, drawn out by "
           "DAPPLE's 23/15 to batch size 64, are Table 6's 6226.3 ms to within 3%.", "share off",
           time_off, "<=", "0.03", LAST_AS_HEADED, "table6.time-ratio"),
    stated("mepipe.table7.bubble", "Table 7",
           "DAPPLE's bubble ratios at batch size 32 are 63.6%, 46.7% and 30.4%.",
           "idle_ratio, to three decimals", dapple, "~3", "printed/1000", TABLE_7),
    stated("mepipe.section-7.3.increment", "section 7.3, on Table 6 read as (PP, CP, DP)",
           "Doubling the stages to 8 adds less to the bubble ratio than doubling them to 4.",
           "difference of idle ratios", increment(*ROWS_6[1:]), "<=", increment(*ROWS_6[:2]), LAST,
           slack="it is less by far: 16/741 against 8/171"),
    stated("mepipe.section-7.3.increment-header",
           "section 7.3, on Table 6 read as headed: (PP, DP, CP)",
           "Doubling the stages to 8 adds less to the bubble ratio than doubling them to 4.",
           "difference of idle ratios", increment(*HEADED_6[1:]), "<=", increment(*HEADED_6[:2]),
           LAST_AS_HEADED, "section-7.3.increment"),
    stated("mepipe.section-7.3.recomputation", "section 7.3",
           "Full recomputation costs 33% more computation.",
           "extra work over work, to two decimals", recomputed_work, "~2", "0.33", RECOMPUTED),
)  # fmt: skip


_REST = (
    *_CUTS,
    stated("mepipe.section-7.3.chunks", "section 7.3",
           "Llama 13B with 40 layers has at most 8 chunks.", "chunks", most_chunks, "==", 8,
           LLAMA_13B, "section-7.3.chunks-corrected"),
    stated("mepipe.section-7.3.chunks-corrected", "ours, for MEPipe section 7.3",
           "8 stages of 5 chunks cut it into 40 of one layer each.", "chunks", most_chunks, "==",
           40, LLAMA_13B),
    stated("mepipe.abstract.speedup", "abstract and section 10",
           "The speedups go up to 1.68, here held against those that section 7.2 reports.",
           "speedup", "speedup/100", "<=", "1.68", SPEEDUPS, "section-1.speedup"),
    stated("mepipe.section-1.speedup", "section 1", "The speedups go up to 1.86.", "speedup",
           "speedup/100", "<=", "1.86", SPEEDUPS),
    missing("mepipe.table6.time", "Tables 6 and 7",
            "The iteration times of DAPPLE by pipeline and context-parallel size.",
            "the durations of a forward and a backward on one device, and of its communication",
            ONE),
    missing("mepipe.section-7.5.gain", "section 7.5, Figures 11 and 12",
            "Fine-grained weight gradients make a step 9.4% faster.",
            "the durations of F, I and of each GEMM of W by slice; the figures have no axis values",
            ONE),
    missing("mepipe.section-7.3.slices", "section 7.3, Figure 9",
            "Eight slices slow a Llama 13B layer by 12.6%.", "the kernel times of Figure 9", ONE),
    missing("mepipe.section-7.4.left", "section 7.4",
            "About 5 GB are left for activations with 16 stages of Llama 34B.",
            "the temporary memory and what the framework reserves: 24 - 34*4/16 - 6.375 is 9.125 "
            "GB", ONE),
)  # fmt: skip


CLAIMS: tuple[Claim, ...] = (*_TABLES, *_REST)
