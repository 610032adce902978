"""PipeMesh's sentences on its evaluation, held against its tables: which exclude each other.

Rows and columns are those of ``pipemesh_tables``. Printed numbers are rounded: ``nearest`` is the
value within the rounding of what a number is computed from that is nearest to what is printed, so
that a contradiction is none of rounding.

The share psi_p / psi of ZeRO-3 parameters follows from n = B/S dequeued microbatches and u = C_DP /
C_bwd alone (section IV-B): B_Z2 = ceil(u) = k backwards hide the reduction, the other n - k hide at
most (n - k)/u of the gathers. So a share below 1 lies in [(n-k)/k, (n-k)/(k-1)) for some k, which
leaves gaps, whatever C_DP and C_bwd are.

Source: Li et al., "PipeMesh" (TPDS 2025) sections I, II, IV and VI.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from bubbleproof.papers.claims.claim import (
    PaperClaim,
    contradicting,
    missing,
    read_as,
    reading,
    stated,
)
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.papers.claims.reading import AT_LEAST, Exact
from bubbleproof.papers.pipemesh.pipemesh_memory import LLAMA2, LLAMA2_BYTES
from bubbleproof.papers.pipemesh.pipemesh_tables import (
    ALL,
    OF,
    ONE,
    TABLE,
    by_throughput,
    layer_gib,
    microbatches,
    printed,
)

HALF = Fraction(1, 20)  # of the last decimal of the table's numbers
V100 = (4, 8, 12)  # PipeMesh's rows
QUEUED = domain(
    "section VI-A's shares of ZeRO-3 parameters, in thousandths, and B/S of Table IV",
    n_share=((12, 844), (8, 909), (12, 869)),
)
FASTER = domain(
    "the ends of the range: Falcon 23.6 %, Llama2 33.8 %, in tenths", row_more=((12, 236), (8, 338))
)
TIMES = domain(
    "the ends of the range: Falcon over either, Llama2 over MegaScale, in hundredths",
    row_over_times=((12, 1, 124), (8, 2, 134)),
)
A100 = ((0, 825), (1, 313))  # overlapped shares in thousandths, by row
OVERLAPPED = domain("PipeMesh and Megatron on A100, printed shares in thousandths", row_share=A100)
# Recomputation in the backwards: less than 2.6 % of the forward computation (section VI-A).
SLOWER = 1 + Fraction("0.026") * TABLE[4]["forward"] / TABLE[4]["backward"]


def nearest(value: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The value between two that is nearest to one."""
    return min(max(value, low), high)


def ratio(above: Fraction, below: Fraction, told: Fraction) -> Fraction:
    """A quotient of two rounded numbers, within their rounding nearest to what is told of it."""
    return nearest(told, (above - HALF) / (below + HALF), (above + HALF) / (below - HALF))


def rate_to_mfu(at: Params) -> Fraction:
    """MFU by the throughput, per cent."""
    row = TABLE[at["row"]]
    return 100 * ratio(row["throughput"], row["peak"], row["mfu"] / 100)


def more(row: int, other: int, told: str) -> Fraction:
    """Per cent of throughput by which a row is ahead of another."""
    times = ratio(TABLE[row]["throughput"], TABLE[other]["throughput"], 1 + Fraction(told) / 100)
    return 100 * (times - 1)


def share_of(told: str, part: str, whole: str, rows: tuple[int, ...]) -> Fraction:
    """Per cent that a column is of others, in the row whose is nearest to what is told."""
    found = (100 * printed(f"({part})/({whole})")({"row": row}) for row in rows)
    return min(found, key=lambda share: abs(share - Fraction(told)))


def longer(told: str, columns: str) -> Fraction:
    """Per cent that Fold3D's columns are above Megatron's, where nearest to what is told."""
    found = []
    for row in range(1, 16, 4):
        plain, folded = (printed(columns)({"row": each}) for each in (row, row + 2))
        found.append(100 * (folded / plain - 1))
    return min(found, key=lambda share: abs(share - Fraction(told)))


def hidden(told: str) -> Fraction:
    """Per cent of Megatron's computation that Fold3D hides of its communication, the nearest."""
    found = [
        100 * (TABLE[row]["dp"] - TABLE[row + 2]["dp"]) / TABLE[row]["compute"]
        for row in range(1, 16, 4)
    ]
    return min(found, key=lambda share: abs(share - Fraction(told)))


def attainable(at: Params, slower: Fraction = Fraction(1)) -> Fraction:
    """The share that section IV-B can give nearest to the printed one; backwards so much longer."""
    n, share = at["n"], Fraction(at["share"], 1000)
    ranges = [(Fraction(1), Fraction(1))]
    for k in range(2, n):
        low, high = Fraction(n - k, k), slower * (n - k) / (k - 1)
        ranges.append((min(low, Fraction(1)), min(high, Fraction(1))))
    return min((nearest(share, *each) for each in ranges), key=lambda found: abs(found - share))


def gap(at: Params) -> Fraction:
    """Per cent that T_iter is above the bound with Megatron's C_comp and no critical message."""
    mesh, plain = TABLE[at["row"]], TABLE[at["row"] + 1]
    bound = plain["compute"] * (1 + (mesh["P"] - 1) / mesh["passes"]) + mesh["dp"]
    return 100 * (mesh["total"] / bound - 1)


def overlapped(at: Params) -> Fraction:
    """Per cent of DP communication, where M of PipeMesh's critical one are all there is."""
    return 100 * (1 - TABLE[at["row"]]["dp"] / (TABLE[0]["M"] * TABLE[0]["dp"]))


def second_chunk_gib(extra: int) -> Fraction:
    """GiB that two chunks take beyond one: Llama2's warm-up and ``extra`` forwards, less P."""
    p = TABLE[8]["P"]
    forwards = (2 - 1) * p + 2 * (p - 1) + extra
    return (forwards / 2 - p) * 20 * layer_gib(LLAMA2, LLAMA2_BYTES)


def ahead_of_megatron(_: Params) -> Fraction:
    """The most that MegaScale's throughput is over Megatron's in Table IV, rounding allowed."""
    pairs = ((TABLE[row + 1]["throughput"], TABLE[row]["throughput"]) for row in range(1, 16, 4))
    return max((above + HALF) / (below - HALF) for above, below in pairs)


def _sentence(name: str, source: str, told: str, measured: Exact, statement: str) -> PaperClaim:
    """A printed percentage of one decimal against Table IV."""
    return contradicting(
        f"pipemesh.{name}", source, told, "Table IV", measured, statement, "per cent", ONE, "~1"
    )


_CONTRADICTIONS = (
    contradicting("pipemesh.tab4.messages", "§IV-A: T_PP = 2(P-1) C_PP with C_PP below C_fwd",
                  printed("2*(P-1)*forward/passes"), "Table IV's T_PP", printed("pp"),
                  "T_PP is at most 2(P-1) C_fwd.", "milliseconds", OF["PipeMesh"], "<="),
    stated("pipemesh.tab4.messages-above", "ours, for PipeMesh Table IV: there is more critical PP "
           "communication than that of the first and last pass",
           "T_PP / 2(P-1) is at least 1.6 C_fwd.", "T_PP / 2(P-1) of PipeMesh",
           printed("pp/(2*P - 2)"), ">=", printed("1.6*forward/passes"), OF["PipeMesh"],
           slack="rounded down"),
    contradicting("pipemesh.tab4.unit", "Table IV's caption: microseconds", 1,
                  "Table IV's throughput", lambda at: by_throughput(at, 10**6),
                  "T_iter is what the throughput gives.",
                  "T_iter by the throughput over the printed one", ALL, "~1"),
    contradicting("pipemesh.tab4.mfu", "Table IV's MFU", printed("mfu"),
                  "Table IV's throughput over the GPU's peak", rate_to_mfu,
                  "MFU is throughput over the GPU's peak.", "per cent", ALL, "~1"),
    stated("pipemesh.tab4.mfu-346", "ours, for PipeMesh Table IV: Llama2's 34.8 is 34.6",
           "MFU is throughput over the GPU's peak with 34.6 for that 34.8.",
           "per cent off, both rounded",
           printed("abs(mfu - 100*(34.6 if row == 9 else throughput)/peak)"), "<=",
           printed("1/20 + 5/peak"), ALL, slack="the printed numbers are rounded"),
    contradicting("pipemesh.sec1.days", "§I: 302 463 and 226 508 GPU days on Llama2",
                  "46.2*226508/302463", "Table IV's throughput of Megatron", "34.8",
                  "The days are as the throughputs.", "TFLOPS of Megatron", ONE, "~1"),
    stated("pipemesh.sec1.days-346", "ours, for PipeMesh §I: with 34.6 for Megatron's 34.8",
           "302 463 and 226 508 GPU days are as the throughputs 34.6 and 46.2.",
           "TFLOPS of Megatron", "46.2*226508/302463", "~1", "34.6", ONE),
    contradicting("pipemesh.sec1.faster", "§I: 23.6 % to 33.8 % over Megatron on V100", "more/10",
                  "Table IV's throughput",
                  lambda at: more(at["row"], at["row"] + 1, str(Fraction(at["more"], 10))),
                  "PipeMesh is 23.6 % to 33.8 % faster than Megatron on V100.", "per cent", FASTER,
                  "~1"),
    _sentence("sec2C.dp", "§II-C: 25.1 %", "25.1", lambda _: share_of("25.1", "dp", "compute",
              (1,)), "On A100 Megatron's critical DP communication is 25.1 % of its computation."),
    _sentence("sec6B.share", "§VI-B: 17.2 %", "17.2", lambda _: share_of("17.2", "dp", "total",
              (1,)), "On A100 Megatron's critical DP communication is 17.2 % of an iteration."),
    contradicting("pipemesh.sec1.idle", "§I: over 20.2 %", "20.2", "Table IV",
                  lambda _: max(100 * printed("dp/total")({"row": row + 1}) for row in V100),
                  "On V100 DP communication idles Megatron's GPUs for over 20.2 % of the time.",
                  "per cent", ONE, ">=", [AT_LEAST]),
    _sentence("sec1.fold3d-hidden", "§I: 23.8 %", "23.8", lambda _: hidden("23.8"),
              "Fold3D hides communication of 23.8 % of the computation time."),
    replace(
        read_as("pipemesh.sec1.fold3d", "§I: 34.1 %",
                "Fold3D's off-loading adds 34.1 % to the computation time.", "per cent", [
                    reading("of all computation", "§I: overhead in computation time",
                            lambda _: longer("34.1", "compute"), "~1", "34.1", ONE),
                    reading("of the backwards", "§I: activations come back before them",
                            lambda _: longer("34.1", "backward"), "~1", "34.1", ONE),
                    reading("of the forwards", "§I: activations leave beside them",
                            lambda _: longer("34.1", "forward"), "~1", "34.1", ONE),
                ]),
        against="PipeMesh Table IV, in the row that is nearest",
    ),
    stated("pipemesh.abstract.fold3d", "Abstract",
           "Breadth-first scheduling slows computation by more than 34 %.", "per cent",
           lambda _: longer("34", "compute"), ">=", 34, ONE, premises=[AT_LEAST],
           slack="Table IV has 38.8 % to 45.5 %"),
    replace(
        read_as("pipemesh.sec1.always", "§I: always more than 27.1 % over Megatron",
                "From 48 to 192 GPUs PipeMesh is always more than 27.1 % faster than Megatron.",
                "per cent; the throughput of MegaScale over Megatron's", [
                    reading("either baseline's range", "§VI-C: 25.0 % to 27.2 % over Megatron and "
                            "MegaScale", "25.0", ">=", "27.1", ONE),
                    reading("25.0 % over MegaScale alone", "Table IV: the most MegaScale is ahead, "
                            "which it would have to be by 1.271/1.25", ahead_of_megatron, ">=",
                            "1.271/1.25", ONE),
                ]),
        against="PipeMesh §VI-C: 25.0 % to 27.2 %",
    ),
    replace(
        read_as("pipemesh.sec6A.zero3", "§VI-A: 84.4, 90.9 and 86.9 % of the parameters",
                "The shares of ZeRO-3 are what §IV-B's planner gives.", "share of the parameters", [
                    reading("backwards without recomputation", "§IV-B: as B_Z2 is set", attainable,
                            "==", "share/1000", QUEUED),
                    reading("backwards with recomputation", "§VI-A: at most 2.6 % of the forwards",
                            lambda at: attainable(at, SLOWER), "==", "share/1000", QUEUED),
                ]),
        against="PipeMesh §IV-B: as many as B/S - B_Z2 backwards hide",
    ),
    contradicting("pipemesh.sec6.accumulation", "§VI: B/P microbatches per device", printed("B/P"),
                  "Table IV's times, by T_bubble", microbatches,
                  "A device accumulates gradients of B/P microbatches.",
                  "microbatches that a row's times tell", ALL, "~0"),
    replace(
        read_as("pipemesh.sec6A.llama2-more", "§VI-A: 4.2 GB",
                "Two chunks of Llama2 take 4.2 GB more than one, by §II-A's formula.", "GiB", [
                    reading("the warm-up and one forward", "§II-A with §IV-A's one more",
                            lambda _: second_chunk_gib(1), "~1", "4.2", ONE),
                    reading("the warm-up alone", "§II-A: (M-1)P + 2(P-1)",
                            lambda _: second_chunk_gib(0), "~1", "4.2", ONE),
                ]),
        against="PipeMesh §II-A and §VI-A's 2.66 GB a microbatch",
    ),
)  # fmt: skip
_SPEEDS = (
    stated("pipemesh.sec6A.a100", "§VI-A", "On A100 PipeMesh is 20.1 % faster than Megatron.",
           "per cent", lambda _: 100 * (TABLE[0]["throughput"] / TABLE[1]["throughput"] - 1), "~1",
           "20.1", ONE),
    stated("pipemesh.sec6A.faster", "§VI-A",
           "On V100 PipeMesh is 1.24 to 1.34 times as fast as either baseline.", "times",
           lambda at: ratio(TABLE[at["row"]]["throughput"],
           TABLE[at["row"] + at["over"]]["throughput"], Fraction(at["times"], 100)), "~2",
           "times/100", TIMES),
    stated("pipemesh.sec6A.dp", "§VI-A",
           "On A100 PipeMesh cuts critical DP communication by 75.3 %.", "per cent",
           lambda _: 100 * (1 - TABLE[0]["dp"] / TABLE[1]["dp"]), "~1", "75.3", ONE),
    missing("pipemesh.sec4A.gap", "§IV-A",
            "Iterations take 5.1 % to 7.2 % more than the lower bound.",
            "C_comp without recomputation and contention, and T_PP and C_DP apart from what Table "
            "IV reports on the critical path",
            estimated="by Megatron's C_comp, pipemesh.sec4A.gap-estimated"),
    stated("pipemesh.sec4A.gap-estimated", "ours, for PipeMesh §IV-A, with Table IV",
           "With Megatron's C_comp and no critical message iterations take at most 7.2 % more than "
           "the bound.", "per cent", gap, "<=", "7.2", OF["PipeMesh"],
           slack="4.6 to 6.6 %; with Table IV's T_PP 1.3 to 3.3 %"),
    missing("pipemesh.sec6A.overlap", "§VI-A",
            "On A100 Megatron overlaps 31.3 % and PipeMesh 82.5 % of DP communication.",
            "all DP communication of each: one total cannot give both, 993.6 / 0.687 is not 245.1 "
            "/ 0.175",
            estimated="with all but the first chunk's hidden, pipemesh.sec6A.overlap-estimated"),
    stated("pipemesh.sec6A.overlap-estimated", "ours, for PipeMesh §VI-A, with Table IV",
           "Where M times PipeMesh's critical DP communication is all there is, the shares are "
           "within 2 points of the printed.", "points off",
           lambda at: abs(overlapped(at) - Fraction(at["share"], 10)), "<=", 2, OVERLAPPED,
           slack="83.3 and 32.4 % for 82.5 and 31.3"),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_CONTRADICTIONS, *_SPEEDS)
