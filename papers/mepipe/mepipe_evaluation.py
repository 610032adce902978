"""MEPipe's evaluation: bubble ratios of Tables 6 and 7, recomputation, stage limits, speedups.

Symbols of a case: p stages, ``d`` data-parallel replicas, ``c`` context-parallel size, ``batch``
the global batch size, ``printed`` the bubble ratio's digits after the point, ``digits`` how many.
A replica runs batch/d microbatches.

Table 6 is headed (PP, DP, CP) and contradicts itself so: its ratios then need n = 64/CP, section
7.3's "increasing PP adds less" fails, and its 6226.3 ms are 27 % more than Table 7 gives for the
same shape. With the columns exchanged, (PP, CP, DP), all three come out, and so what follows is
read. Table 7's own ratios follow from its header. Iteration times were measured on machines; claims
on them name what is missing.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from bubbleproof.papers.claims.claim import (
    MissingInput,
    PaperClaim,
    contradicting,
    missing,
    read_as,
    reading,
    stated,
)
from bubbleproof.papers.claims.domain import CaseValues, Domain, Params, case, domain, scope
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, makespan
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute

COLUMNS = ("p", "d", "c", "batch", "printed", "digits")
ROWS_6 = ((2, 8, 4, 64, 111, 3), (4, 4, 4, 64, 15, 2), (8, 2, 4, 64, 18, 2))  # (PP, CP, DP)
HEADED_6 = tuple((p, c, d, *rest) for p, d, c, *rest in ROWS_6)
ROWS_7 = ((8, 8, 1, 32, 636, 3), (8, 4, 2, 32, 467, 3), (8, 2, 4, 32, 304, 3))


def _rows(text: str, rows: Sequence[CaseValues]) -> Domain:
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


def increment(before: CaseValues, after: CaseValues) -> NumberOf:
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
SPEEDUPS = {128: 136, 64: 149, 32: 186}  # section 7.2, in hundredths, by global batch size
LARGEST = case("the abstract's 1.68 and section 7.2's 1.36, 1.49 and 1.86", abstract=168)
# SVPP's ticks without and with weight gradients apart (``w``), 8 stages and 4 slices.
BY_TICKS = domain(
    "n = 4 and 16 samples of 4 slices on 8 stages, W in its backward or apart (tF = tI = tW)",
    w_hundredths=((0, 169), (1, 198)),
)
EXCHANGED, HEADED = "columns exchanged, (PP, CP, DP)", "as headed, (PP, DP, CP)"
RATIOS_NEED = "Table 6's bubble ratios need n = 64/DP so"
ONE = "one measurement"


def most_speedup(_: Params) -> Fraction:
    """The largest of section 7.2's speedups."""
    return Fraction(max(SPEEDUPS.values()), 100)


def mean_speedup(_: Params, largest: int = SPEEDUPS[32]) -> Fraction:
    """The mean of section 7.2's speedups, the largest as given."""
    return Fraction(sum({**SPEEDUPS, 32: largest}.values()), 100 * len(SPEEDUPS))


def gain_by_ticks(at: Params) -> Fraction:
    """How much longer SVPP takes than SVPP with W apart and room for all activations."""
    apart = {**at, "f": at["m"] * at["v"] * at["s"], "tF": 1, "tI": 1, "tW": 1}
    whole = makespan("svpp")({**at, "tF": 1, "tB": 2})
    return Fraction(whole, makespan("svpp-w")(apart)) - 1


def gain_held(at: Params) -> Fraction:
    """The same with W apart within SVPP's own f."""
    apart = makespan("svpp-w")({**at, "tF": 1, "tI": 1, "tW": 1})
    return Fraction(makespan("svpp")({**at, "tF": 1, "tB": 2}), apart) - 1


def speedup_by_ticks(at: Params) -> Fraction:
    """DAPPLE's Table 7 over MEPipe's Table 9, the latter drawn from 16 samples to 4 by ticks."""

    def ticks(samples: int) -> int:
        shape = {"p": 8, "m": samples, "v": 1, "s": 4, "tF": 1}
        if at["w"]:
            return int(makespan("svpp-w")({**shape, "f": 4 * samples, "tI": 1, "tW": 1}))
        return int(makespan("svpp")({**shape, "tB": 1}))

    return Fraction(31997, 58520) * Fraction(ticks(16), ticks(4))


Cuts = Iterable[tuple[int, int]]


def _even_cuts(at: Params) -> list[tuple[int, int]]:
    """(stages, 2 or more chunks per stage) that cut the layers evenly; the stages divide gpus."""
    layers, gpus = at["layers"], at["gpus"]
    return [
        (p, v)
        for p in range(1, gpus + 1)
        for v in range(2, layers + 1)
        if gpus % p == 0 and layers % (p * v) == 0
    ]


def _powers_of_two(cuts: Cuts) -> Cuts:
    """The cuts into powers of two, as every printed configuration is."""
    return ((p, v) for p, v in cuts if p & (p - 1) == 0 and v & (v - 1) == 0)


def most_stages(cuts: Cuts) -> int:
    """The most stages of a cut."""
    return max(p for p, _ in cuts)


def most_chunks(cuts: Cuts) -> int:
    """The most chunks of a cut, over all stages."""
    return max(p * v for p, v in cuts)


def _cut(
    name: str, statement: str, quantity: str, most: Callable[[Cuts], int], said: int, cases: Domain
) -> PaperClaim:
    """A claim on the most that an even cut of the layers can have."""
    where = f"section {name.split('-')[1].rstrip('.')}"
    return read_as(f"mepipe.{name}", where, statement, quantity, (
        reading("stages and chunks are powers of two", "Tables 5 to 8: every configuration has "
                "them so", lambda at: most(_powers_of_two(_even_cuts(at))), "==", said, cases),
        reading("two chunks a stage", "section 7.2: ZBV, which is limited alike, has two",
                lambda at: most([(p, v) for p, v in _even_cuts(at) if v == 2]), "==", said, cases),
        reading("any even cut", f"{where}: the sentence by itself",
                lambda at: most(_even_cuts(at)), "==", said, cases),
    ))  # fmt: skip


_CUTS: tuple[PaperClaim, ...] = (
    _cut("section-7.2.vpp-stages", "VPP cuts Llama 13B with 40 layers evenly into at most 4 "
         "stages.", "stages", most_stages, 4, LLAMA_13B),
    _cut("section-7.4.vpp-stages", "VPP cuts Llama 34B with 48 layers evenly into at most 8 "
         "stages.", "stages", most_stages, 8, LLAMA_34B),
    _cut("section-7.3.chunks", "Llama 13B with 40 layers has at most 8 chunks.", "chunks",
         most_chunks, 8, LLAMA_13B),
)  # fmt: skip


_TABLES = (
    stated("mepipe.table6.bubble", "Table 6, read as (PP, CP, DP)",
           "DAPPLE's bubble ratios at batch size 64 are the printed 11.1%, 15% and 18% (15.8% is "
           "printed cut off).", "units of the last printed digit off", off, "<=", 1, TABLE_6,
           slack=CUT_OFF),
    contradicting("mepipe.table6.header", "Table 6's header, (PP, DP, CP)", dapple,
                  "the bubble ratios in it", "printed/10**digits",
                  "The bubble ratios of Table 6 are those of its configurations.", "bubble ratio",
                  AS_HEADED, "~2"),
    stated("mepipe.table6.bubble-exact", "ours, for MEPipe Table 6, read as (PP, CP, DP)",
           "With n = 8, 16 and 32 they are 1/9, 3/19 and 7/39: n is 4p, and the ratio "
           "(p-1)/(5p-1).", "idle_ratio", dapple, "==", "(p-1)/(5*p - 1)", TABLE_6),
    read_as("mepipe.table6.time-ratio", "Tables 6 and 7",
            "Table 7's time for 8 stages at batch size 32, drawn out by DAPPLE's ticks to 64, is "
            "Table 6's 6226.3 ms to within 3%.", "share off", (
                reading(EXCHANGED, f"{RATIOS_NEED}: DP 2, CP 4, by 39/23", time_off, "<=", "0.03",
                        LAST, slack="it is 2.7%"),
                reading(HEADED, "Table 6's header: DP 4, CP 2, by 23/15", time_off, "<=", "0.03",
                        LAST_AS_HEADED),
            )),
    stated("mepipe.table7.bubble", "Table 7",
           "DAPPLE's bubble ratios at batch size 32 are 63.6%, 46.7% and 30.4%.",
           "idle_ratio, to three decimals", dapple, "~3", "printed/1000", TABLE_7),
    read_as("mepipe.section-7.3.increment", "section 7.3",
            "Doubling the stages to 8 adds less to the bubble ratio than doubling them to 4.",
            "difference of bubble ratios", (
                reading("by the printed ratios", "Table 6: 11.1%, 15% and 18%", "18 - 15", "<=",
                        "15 - 11.1", LAST, slack="3 against 3.9 points"),
                reading(f"measured, {EXCHANGED}", RATIOS_NEED, increment(*ROWS_6[1:]), "<=",
                        increment(*ROWS_6[:2]), LAST,
                        slack="it is less by far: 16/741 against 8/171"),
                reading(f"measured, {HEADED}", "Table 6's header", increment(*HEADED_6[1:]), "<=",
                        increment(*HEADED_6[:2]), LAST_AS_HEADED),
            )),
    stated("mepipe.section-7.3.recomputation", "section 7.3",
           "Full recomputation costs 33% more computation.",
           "extra work over work, to two decimals", recomputed_work, "~2", "0.33", RECOMPUTED),
)  # fmt: skip


_REST = (
    *_CUTS,
    contradicting("mepipe.abstract.speedup", "abstract and section 10", "abstract/100",
                  "sections 1 and 7.2", most_speedup,
                  "The largest speedup over other systems is one number.", "speedup", LARGEST),
    stated("mepipe.section-1.speedup", "section 1",
           "The largest of section 7.2's speedups is 1.86.", "speedup", most_speedup, "==", "1.86",
           LARGEST),
    stated("mepipe.section-7.2.speedup-ticks", "ours, for MEPipe section 7.2",
           "Drawn out by SVPP's ticks from Table 9's 5852 ms at batch size 128, MEPipe is 1.69 "
           "times as fast as DAPPLE's 3199.7 ms at 32; with weight gradients apart 1.98 times.",
           "speedup, to two decimals", speedup_by_ticks, "~2", "hundredths/100", BY_TICKS),
    read_as("mepipe.abstract.average", "abstract", "The speedup is 1.35 on average.", "speedup", (
        reading("over the three batch sizes", "section 7.2: 1.36, 1.49 and 1.86", mean_speedup,
                "~2", "1.35", LARGEST),
        reading("with the abstract's largest", "abstract and section 7.2: 1.36, 1.49 and 1.68",
                lambda at: mean_speedup(at, largest=at["abstract"]), "~2", "1.35", LARGEST),
    ), missing=MissingInput(
        input="over Llama of varying sizes, as the abstract has it, the speedups on 7B and 34B are "
        "needed, which Figure 10 draws and no text prints", where="the authors' cluster",
        estimated="1.02 on average for those two (mepipe.abstract.average-rest)")),
    stated("mepipe.abstract.average-rest", "ours, for MEPipe's abstract",
           "For an average of 1.35 over the five experiments the two on 7B and 34B must average "
           "1.02; with the abstract's 1.68 for 1.86 it is 1.11.", "speedup, to two decimals",
           lambda at: (5 * Fraction("1.35") - 3 * mean_speedup(at)) / 2, "~2", "1.02", LARGEST),
    missing("mepipe.table6.time", "Tables 6 and 7",
            "The iteration times of DAPPLE by pipeline and context-parallel size.",
            "the durations of a forward and a backward on one device, and of its communication",
            ONE, "the ratio of two of them, by ticks (mepipe.table6.time-ratio)"),
    missing("mepipe.section-7.5.gain", "section 7.5, Figures 11 and 12",
            "Fine-grained weight gradients make a step 9.4% faster.",
            "the durations of F, I and of each GEMM of W by slice; the figures have no axis values",
            ONE, "10.4 % at the batch of 64 and equal ticks, with SVPP's f "
            "(mepipe.section-7.5.gain-held); 13.6 % with memory for all (gain-ticks)"),
    stated("mepipe.section-7.5.gain-held", "ours, for MEPipe section 7.5",
           "At a batch of 64 (8 samples of 4 slices on 8 stages), tF = tI = tW and SVPP's f, "
           "weight gradients apart make a step 10.4 % faster.", "makespan over makespan, less 1",
           gain_held, "~3", "0.104", case("p=8, n=8, s=4", p=8, m=8, v=1, s=4)),
    stated("mepipe.section-7.5.gain-ticks", "ours, for MEPipe section 7.5",
           "At tF = tI = tW and with memory for all, weight gradients apart make a step of 8 "
           "samples of 4 slices on 8 stages 13.6 % faster.", "makespan over makespan, less 1",
           gain_by_ticks, "~3", "0.136", case("p=8, n=8, s=4", p=8, m=8, v=1, s=4)),
    missing("mepipe.section-7.3.slices", "section 7.3, Figure 9",
            "Eight slices slow a Llama 13B layer by 12.6%.", "the kernel times of Figure 9", ONE),
    missing("mepipe.section-7.4.left", "section 7.4",
            "About 5 GB are left for activations with 16 stages of Llama 34B.",
            "the temporary memory and what the framework reserves", ONE,
            "9.125 GB before them, 24 - 34*4/16 - 6.375 by sections 4.5 and 7.4"),
)  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (*_TABLES, *_REST)
