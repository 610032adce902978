"""The field's formulas for GPipe, 1F1B, interleaved 1F1B and breadth-first schedules.

Symbols: p ranks, m microbatches, v chunks per rank, tF and tB the ticks of one action. A bubble is
either idle_ratio, the idle share of all time, or idle_over_work, idle time over working time; the
papers call both "bubble".
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_over_work
from bubbleproof.papers.claims.claim import Claim, stated
from bubbleproof.papers.claims.domain import Params, divides, domain, is_filled
from bubbleproof.papers.claims.field_domains import ANY, FEWER_RANKS, OF_RANKS, shapes
from bubbleproof.papers.claims.measured_pipelines import (
    idle_over_work,
    idle_ratio,
    makespan,
    peak,
    peak_of_rank,
    span_idle,
)

CHUNKS = (2, 3, 4)
MEGATRON = "Narayanan et al., Megatron-LM (SC 2021)"
GPIPE = "Huang et al., GPipe (NeurIPS 2019) section 2.3"
BREADTH = "Lamy-Poirier, Breadth-First Pipeline Parallelism (MLSys 2023)"

CHUNKED = shapes("any m", ranks=FEWER_RANKS, v=CHUNKS)
FILLED = shapes("m >= p", is_filled, ranks=FEWER_RANKS, v=CHUNKS)
DIVIDED = shapes("p divides m", divides, ranks=FEWER_RANKS, v=CHUNKS)
ORDERS = domain(
    "p = 2; m <= 3; v in 2 3; tF and tB in 1 2, every order",
    p=(2,), m=(1, 2, 3), v=(2, 3), tF=(1, 2), tB=(1, 2),
)  # fmt: skip


def share(at: Params) -> Fraction:
    """(p-1)/(m+p-1)."""
    return Fraction(at["p"] - 1, at["m"] + at["p"] - 1)


def overhead(at: Params) -> Fraction:
    """(p-1)/(vm)."""
    return Fraction(at["p"] - 1, at.get("v", 1) * at["m"])


def plain_makespan(at: Params) -> int:
    """(m+p-1)(tF+tB)."""
    return (at["m"] + at["p"] - 1) * (at["tF"] + at["tB"])


def korthikanti(at: Params) -> int:
    """pv(1 + (p-1)/(pv)) units."""
    return at["p"] * at["v"] + at["p"] - 1


def _plain_claims(name: str, source: str) -> tuple[Claim, ...]:
    return (
        stated(f"field.{name}.makespan", source, "A step takes (m+p-1)(tF+tB).", "makespan (ticks)",
               makespan(name), "==", plain_makespan, ANY),
        stated(f"field.{name}.idle-ratio", source, "The share of idle time is (p-1)/(m+p-1).",
               "idle_ratio", idle_ratio(name), "==", share, ANY),
        stated(f"field.{name}.idle-over-work", f"{MEGATRON} section 2.2",
               "Idle time over ideal working time is (p-1)/m.", "idle_over_work",
               idle_over_work(name), "==", overhead, ANY),
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    *_plain_claims("gpipe", GPIPE),
    stated("field.gpipe.peak", f"{MEGATRON} section 2.2",
           "Every rank keeps the activations of all m microbatches.", "peak activations (units)",
           peak("gpipe"), "==", lambda at: at["m"], ANY),
    *_plain_claims("1f1b", f"{MEGATRON} section 2.2; DAPPLE (PPoPP 2021)"),
    stated("field.1f1b.span-idle",
           "Qi et al., Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.3, table for 1F1B",
           "1F1B idles (p-1)(tF+tB) within a rank's span.", "span_idle (ticks)", span_idle("1f1b"),
           "==", lambda at: (at["p"] - 1) * (at["tF"] + at["tB"]), ANY),
    stated("field.1f1b.peak", f"{MEGATRON} section 2.2",
           "1F1B keeps the activations of p microbatches.", "peak activations (units)",
           peak("1f1b"), "==", lambda at: at["p"], ANY, "1f1b.peak-of-rank"),
    stated("field.1f1b.peak-of-rank",
           "ours; PipeDream (SOSP 2019) section 3.2 for many microbatches",
           "Rank r keeps the activations of min(p-r, m) microbatches.",
           "peak activations of rank r (units)", peak_of_rank("1f1b"), "==",
           lambda at: min(at["p"] - at["r"], at["m"]), OF_RANKS),
    stated("field.interleaved.bubble", f"{MEGATRON} section 2.2",
           "Interleaving divides the bubble by v: some order has (p-1)/(vm), here for any m.",
           "least idle_over_work of any order", least_idle_over_work("interleaved"), "==", overhead,
           ORDERS, "interleaved.bubble-divided"),
    stated("field.interleaved.bubble-divided", f"{MEGATRON} section 2.2",
           "Where p divides m, as the schedule requires, the bubble is (p-1)/(vm).",
           "idle_over_work", idle_over_work("interleaved"), "==", overhead, DIVIDED),
    stated("field.interleaved.bubble-filled", "ours",
           "The bubble is (p-1)/(vm) for every m >= p when the remainder is spread over the "
           "groups.", "idle_over_work", idle_over_work("interleaved-spread"), "==", overhead,
           FILLED),
    stated("field.interleaved.peak", "Korthikanti et al. (MLSys 2023) section 4.2.3",
           "The first rank keeps 1 + (p-1)/(pv) times 1F1B's activations.",
           "peak activations (units of one chunk)", peak("interleaved"), "==", korthikanti, DIVIDED,
           "interleaved.peak-bounded"),
    stated("field.interleaved.peak-bounded", "ours",
           "The first rank keeps that many, or all mv where there are no more.",
           "peak activations (units of one chunk)", peak("interleaved"), "==",
           lambda at: min(korthikanti(at), at["m"] * at["v"]), DIVIDED),
    stated("field.bfs.bubble", f"{BREADTH} section 4",
           "Breadth-first order has the interleaved bubble, (p-1)/(vm), here for any m.",
           "idle_over_work", idle_over_work("bfs"), "==", overhead, CHUNKED, "bfs.bubble-filled"),
    stated("field.bfs.bubble-filled", f"{BREADTH} section 4",
           "With m >= p the bubble is (p-1)/(vm); p need not divide m.", "idle_over_work",
           idle_over_work("bfs"), "==", overhead, FILLED),
    stated("field.bfs.peak", f"{BREADTH} section 4",
           "Every rank keeps all m microbatches on all its v chunks.",
           "peak activations (units of one chunk)", peak("bfs"), "==", lambda at: at["m"] * at["v"],
           CHUNKED),
)  # fmt: skip
