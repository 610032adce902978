"""The field's formulas for GPipe, 1F1B, interleaved 1F1B and breadth-first schedules.

Symbols: p ranks, m microbatches, v chunks per rank, tF and tB the ticks of one action. A bubble is
either idle_ratio, the idle share of all time, or idle_over_work, idle time over working time; the
papers call both "bubble".

Both papers speak of m >= p, where interleaved and breadth-first orders have the bubble (p-1)/(vm).
With m < p the last stage, p v - 1, waits for p v - 1 forwards, runs m forwards and m backwards, and
p v - 1 backwards follow: no order takes less than (pv + m-1)(tF + tB), an idle_over_work of
(pv + m-1 - mv)/(mv), and both take no more.

``shapes`` makes the cases of these and of the zero-bubble family's claims.
"""

from __future__ import annotations

from bubbleproof.papers.claims.any_order import least
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    CHUNKS,
    EVERY,
    RANKS,
    RATIOS,
    SLICES,
    Counts,
    Domain,
    Ranges,
    Ratios,
    domain,
    scope,
)
from bubbleproof.papers.claims.measured_pipelines import (
    idle_over_work,
    idle_ratio,
    makespan,
    peak,
    peak_of_rank,
    span_idle,
)
from bubbleproof.papers.claims.reading import UP_TO, Premise

CHUNKED_BY = ((2, 3, 4), (2, 3, 4))
FEW_RANKS = (range(2, 9), RANKS)


def shapes(
    condition: str = "any durations",
    where: str = "True",
    ratios: Ratios = RATIOS,
    ranks: Ranges = FEW_RANKS,
    **others: Ranges,
) -> Domain:
    """Every m <= 4p on up to 8 ranks, and in an audit on up to 16, where ``where`` holds.

    The text ends with ``condition``, which says in words what ``where`` does.
    """
    return scope(condition, where, ranks=ranks, looked_at=EVERY, ratios=ratios, **others)


ANY = shapes()
OF_RANKS = domain(
    "2 <= p <= 8; m <= 4p; every rank r", p=range(2, 9), m="range(1, 4*p + 1)", r="range(p)"
).widened("2 <= p <= 16; m <= 4p; every rank r", p=RANKS)


MEGATRON = "Narayanan et al., Megatron-LM (SC 2021)"
GPIPE = "Huang et al., GPipe (NeurIPS 2019) section 2.3"
SEQUENCES = "Sun et al., Seq1F1B (NAACL 2025) Figure 1, and its code"
SLIM = "Li et al., SlimPipe (SC 2025), and its code"
BREADTH = "Lamy-Poirier, Breadth-First Pipeline Parallelism (MLSys 2023)"

CHUNKED = shapes("any m", v=CHUNKED_BY)
FILLED = shapes("m >= p", "m >= p", v=CHUNKED_BY)
PLAIN_FILLED = shapes("m >= p", "m >= p")
TWO_GROUPS = shapes("p divides m, m > p", "m % p == 0 and m > p", v=CHUNKED_BY)
FULL_PIPE = Premise(text="m >= p", cases="m >= p")
GROUPED = Premise(text="p divides m", cases="m % p == 0")
SEVERAL = Premise(text="p divides m, m > p", cases="m % p == 0 and m > p")
DIVIDED = shapes("p divides m", "m % p == 0", v=CHUNKED_BY)
SLICED = scope(
    "v = 1, or s divides p and p divides m*s",
    "v == 1 or (p % s == 0 and m * s % p == 0)",
    ranks=((2, 3, 4), (2, 3, 4, 6, 8, 16)), v=((1, 2), CHUNKS), s=((1, 2, 4), SLICES),
)  # fmt: skip
FINELY = scope(
    "v = 1, or s >= p", "v == 1 or s >= p",
    ranks=((2, 3, 4), (2, 3, 4, 6, 8, 16)), v=((1, 2), CHUNKS), s=((1, 2, 4), SLICES),
)  # fmt: skip
SLICED_RANKS = domain(
    "2 <= p <= 5; m <= 4p; s in 1 2 3; every rank r",
    p=range(2, 6), m="range(1, 4*p + 1)", s=(1, 2, 3), r="range(p)",
).widened("2 <= p <= 16; m <= 4p; s in 1 2 3; every rank r", p=RANKS)  # fmt: skip
FEW = scope(
    "m < p",
    ranks=((2, 3, 4, 5), (2, 3, 4, 5, 7, 8, 11, 16)),
    looked_at=Counts(text="every m < p", of=lambda p: range(1, p)),
    v=((1, 2, 3), CHUNKS),
)
ANY_ORDER = domain(
    "3 <= p <= 5, 2 <= m < p, v in 2 3, tF:tB in 1:1 1:2 2:1",
    p=(3, 4, 5), m="range(2, p)", v="(2, 3) if p == 3 else (2,)", tF_tB=RATIOS[:3],
)  # fmt: skip


SHARE, OVERHEAD = "(p-1)/(m+p-1)", "(p-1)/(v*m)"
TIME = "(p*v + m-1)*(tF + tB)"  # with m < p


def _plain_claims(name: str, source: str) -> tuple[PaperClaim, ...]:
    return (
        stated(f"field.{name}.makespan", source, "A step takes (m+p-1)(tF+tB).", "makespan (ticks)",
               makespan(name), "==", "(m+p-1)*(tF+tB)", ANY),
        stated(f"field.{name}.idle-ratio", source, "The share of idle time is (p-1)/(m+p-1).",
               "idle_ratio", idle_ratio(name), "==", SHARE, ANY),
        stated(f"field.{name}.idle-over-work", f"{MEGATRON} section 2.2",
               "Idle time over ideal working time is (p-1)/m.", "idle_over_work",
               idle_over_work(name), "==", "(p-1)/m", ANY),
    )  # fmt: skip


def _few_claim(name: str, source: str, title: str) -> PaperClaim:
    return stated(f"field.{name}.makespan-few", f"ours, for {source}",
                  f"{title} takes (pv + m-1)(tF + tB) with m < p, at any durations.",
                  "makespan (ticks)", makespan(name), "==", TIME, FEW)  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (
    *_plain_claims("gpipe", GPIPE),
    stated("field.gpipe.peak", f"{MEGATRON} section 2.2",
           "Every rank keeps the activations of all m microbatches.", "peak activations (units)",
           peak("gpipe"), "==", "m", ANY),
    *_plain_claims("1f1b", f"{MEGATRON} section 2.2; DAPPLE (PPoPP 2021)"),
    stated("field.1f1b.span-idle",
           "Qi et al., Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.3, table for 1F1B",
           "1F1B idles (p-1)(tF+tB) within a rank's span.", "span_idle (ticks)", span_idle("1f1b"),
           "==", "(p-1)*(tF+tB)", ANY),
    read_as("field.1f1b.peak", f"{MEGATRON} section 2.2",
            "1F1B keeps the activations of p microbatches.", "peak activations (units)", [
                reading("at most", "at most p are in flight, whatever m", peak("1f1b"), "<=", "p",
                        ANY, [UP_TO]),
                reading("just p, of p or more", "a filled pipeline", peak("1f1b"), "==", "p",
                        PLAIN_FILLED, [FULL_PIPE]),
            ]),
    stated("field.1f1b.peak-of-rank",
           "ours; PipeDream (SOSP 2019) section 3.2 for many microbatches",
           "Rank r keeps the activations of min(p-r, m) microbatches.",
           "peak activations of rank r (units)", peak_of_rank("1f1b"), "==", "min(p-r, m)",
           OF_RANKS),
    stated("field.interleaved.bubble", f"{MEGATRON} section 2.2",
           "Interleaving divides the bubble by v: it is (p-1)/(vm).", "idle_over_work",
           idle_over_work("interleaved"), "==", OVERHEAD, DIVIDED, premises=[GROUPED]),
    stated("field.interleaved.bubble-filled", "ours",
           "The bubble is (p-1)/(vm) for every m >= p when the remainder is spread over the "
           "groups.", "idle_over_work", idle_over_work("interleaved-spread"), "==", OVERHEAD,
           FILLED),
    stated("field.interleaved.peak", "Korthikanti et al. (MLSys 2023) section 4.2.3",
           "The first rank keeps 1 + (p-1)/(pv) times 1F1B's activations.",
           "peak activations (units of one chunk)", peak("interleaved"), "==", "p*v + p-1",
           TWO_GROUPS, premises=[SEVERAL]),
    stated("field.bfs.bubble", f"{BREADTH} section 4",
           "Breadth-first order has the interleaved bubble, (p-1)/(vm).", "idle_over_work",
           idle_over_work("bfs"), "==", OVERHEAD, FILLED, premises=[FULL_PIPE]),
    stated("field.bfs.peak", f"{BREADTH} section 4",
           "Every rank keeps all m microbatches on all its v chunks.",
           "peak activations (units of one chunk)", peak("bfs"), "==", "m*v", CHUNKED),
    stated("field.seq1f1b.makespan", SEQUENCES,
           "A step takes (msv+p-1)(tF+tB), in ticks of a slice on a chunk.", "makespan (ticks)",
           makespan("seq1f1b"), "==", "(m*s*v+p-1)*(tF+tB)", SLICED),
    stated("field.seq1f1b.peak-of-rank", SEQUENCES,
           "With one chunk rank r keeps min(p-r + s-1, ms) slices.",
           "peak activations of rank r (units)", peak_of_rank("seq1f1b"), "==",
           "min(p-r + s-1, m*s)", SLICED_RANKS),
    stated("field.seq1f1b.peak", SEQUENCES,
           "The first rank keeps p + s-1 slices, with v chunks (v+1)p + s-2, or all msv.",
           "peak activations (units)", peak("seq1f1b"), "==",
           "min(((v+1)*p + s-2 if v > 1 else p + s-1), m*s*v)", SLICED),
    stated("field.slimpipe.makespan", SLIM,
           "A step takes (msv+p-1)(tF+tB), in ticks of a slice on a chunk.", "makespan (ticks)",
           makespan("slimpipe"), "==", "(m*s*v+p-1)*(tF+tB)", FINELY),
    stated("field.slimpipe.peak-of-rank", SLIM,
           "With one chunk rank r keeps min(s + 2(p-r-1), ms) slices.",
           "peak activations of rank r (units)", peak_of_rank("slimpipe"), "==",
           "min(s + 2*(p-r-1), m*s)", SLICED_RANKS),
    stated("field.slimpipe.peak", SLIM,
           "The first rank keeps sv + 2(p-1) slices, (1 + 2(p-1)/(sv))/p of a sample, or all msv.",
           "peak activations (units)", peak("slimpipe"), "==", "min(s*v + 2*(p-1), m*s*v)",
           FINELY),
    _few_claim("interleaved", f"{MEGATRON} section 2.2", "Interleaved 1F1B, one group of m,"),
    _few_claim("bfs", f"{BREADTH} section 4", "Breadth-first order"),
    stated("field.few.least", "ours",
           "With m < p no order of v chunks, stage g on rank g mod p, is shorter.",
           "least makespan of any order (ticks)", least(makespan("bfs")), "==", TIME, ANY_ORDER),
)  # fmt: skip
