"""The field's formulas for GPipe, 1F1B, interleaved 1F1B and breadth-first schedules.

Symbols: p ranks, m microbatches, v chunks per rank, tF and tB the ticks of one action. A bubble is
either idle_ratio, the idle share of all time, or idle_over_work, idle time over working time; the
papers call both "bubble".
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_over_work
from bubbleproof.papers.claims.claim import Claim, Params, grid
from bubbleproof.papers.claims.field_schedules import (
    ALL_RANKS,
    FEWER_RANKS,
    RANKS,
    idle_over_work,
    idle_ratio,
    is_looked_at,
    makespan,
    peak,
    peak_of_rank,
    shapes,
    span_idle,
    stated,
)
from bubbleproof.papers.claims.scope import Scope

CHUNKS = (2, 3, 4)
MEGATRON = "Narayanan et al., Megatron-LM (SC 2021)"
GPIPE = "Huang et al., GPipe (NeurIPS 2019) section 2.3"
BREADTH = "Lamy-Poirier, Breadth-First Pipeline Parallelism (MLSys 2023)"


def is_filled(at: Params) -> bool:
    return at["m"] >= at["p"]


def divides(at: Params) -> bool:
    return at["m"] % at["p"] == 0


ANY = shapes()
CHUNKED = shapes("any m", ranks=FEWER_RANKS, v=CHUNKS)
FILLED = shapes("m >= p", is_filled, ranks=FEWER_RANKS, v=CHUNKS)
DIVIDED = shapes("p divides m", divides, ranks=FEWER_RANKS, v=CHUNKS)
ORDERS = grid(
    "p = 2; m <= 3; v in 2 3; tF and tB in 1 2, every order",
    p=(2,), m=(1, 2, 3), v=(2, 3), tF=(1, 2), tB=(1, 2),
)  # fmt: skip
OF_RANKS = Scope(
    small=grid(
        "p in 2 3 4 5 6 7 8 11 16; m <= 4p (from p = 6 on only m <= 2 and m within 1 of a "
        "multiple of p); every rank r",
        where=lambda at: at["r"] < at["p"] and is_looked_at(at),
        p=RANKS,
        m=range(1, 65),
        r=range(16),
    ),
    wide=grid(
        "2 <= p <= 16; m <= 4p; every rank r",
        where=lambda at: at["r"] < at["p"] and at["m"] <= 4 * at["p"],
        p=ALL_RANKS,
        m=range(1, 65),
        r=range(16),
    ),
)


def share(at: Params) -> Fraction:
    """(p-1)/(m+p-1)."""
    return Fraction(at["p"] - 1, at["m"] + at["p"] - 1)


def overhead(at: Params) -> Fraction:
    """(p-1)/(vm)."""
    return Fraction(at["p"] - 1, at.get("v", 1) * at["m"])


def plain_makespan(at: Params) -> Fraction:
    """(m+p-1)(tF+tB)."""
    return Fraction((at["m"] + at["p"] - 1) * (at["tF"] + at["tB"]))


def korthikanti(at: Params) -> Fraction:
    """pv(1 + (p-1)/(pv)) units."""
    return Fraction(at["p"] * at["v"] + at["p"] - 1)


def _plain_claims(name: str, source: str) -> tuple[Claim, ...]:
    return (
        stated(
            f"field.{name}.makespan",
            source,
            "A step takes (m+p-1)(tF+tB).",
            "makespan (ticks)",
            ANY,
            plain_makespan,
            makespan(name),
        ),
        stated(
            f"field.{name}.idle-ratio",
            source,
            "The share of idle time is (p-1)/(m+p-1).",
            "idle_ratio",
            ANY,
            share,
            idle_ratio(name),
        ),
        stated(
            f"field.{name}.idle-over-work",
            f"{MEGATRON} section 2.2",
            "Idle time over ideal working time is (p-1)/m.",
            "idle_over_work",
            ANY,
            overhead,
            idle_over_work(name),
        ),
    )


CLAIMS: tuple[Claim, ...] = (
    *_plain_claims("gpipe", GPIPE),
    stated(
        "field.gpipe.peak",
        f"{MEGATRON} section 2.2",
        "Every rank keeps the activations of all m microbatches.",
        "peak activations (units)",
        ANY,
        lambda at: Fraction(at["m"]),
        peak("gpipe"),
    ),
    *_plain_claims("1f1b", f"{MEGATRON} section 2.2; DAPPLE (PPoPP 2021)"),
    stated(
        "field.1f1b.span-idle",
        "Qi et al., Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.3, table for 1F1B",
        "1F1B idles (p-1)(tF+tB) within a rank's span.",
        "span_idle (ticks)",
        ANY,
        lambda at: Fraction((at["p"] - 1) * (at["tF"] + at["tB"])),
        span_idle("1f1b"),
    ),
    stated(
        "field.1f1b.peak",
        f"{MEGATRON} section 2.2",
        "1F1B keeps the activations of p microbatches.",
        "peak activations (units)",
        ANY,
        lambda at: Fraction(at["p"]),
        peak("1f1b"),
        corrected="field.1f1b.peak-of-rank",
    ),
    stated(
        "field.1f1b.peak-of-rank",
        "ours; PipeDream (SOSP 2019) section 3.2 for many microbatches",
        "Rank r keeps the activations of min(p-r, m) microbatches.",
        "peak activations of rank r (units)",
        OF_RANKS,
        lambda at: Fraction(min(at["p"] - at["r"], at["m"])),
        peak_of_rank("1f1b"),
    ),
    stated(
        "field.interleaved.bubble",
        f"{MEGATRON} section 2.2",
        "Interleaving divides the bubble by v: some order has (p-1)/(vm), here for any m.",
        "least idle_over_work of any order",
        ORDERS,
        overhead,
        least_idle_over_work("interleaved"),
        corrected="field.interleaved.bubble-divided",
    ),
    stated(
        "field.interleaved.bubble-divided",
        f"{MEGATRON} section 2.2",
        "Where p divides m, as the schedule requires, the bubble is (p-1)/(vm).",
        "idle_over_work",
        DIVIDED,
        overhead,
        idle_over_work("interleaved"),
    ),
    stated(
        "field.interleaved.bubble-filled",
        "ours",
        "The bubble is (p-1)/(vm) for every m >= p when the remainder is spread over the groups.",
        "idle_over_work",
        FILLED,
        overhead,
        idle_over_work("interleaved-spread"),
    ),
    stated(
        "field.interleaved.peak",
        "Korthikanti et al. (MLSys 2023) section 4.2.3",
        "The first rank keeps 1 + (p-1)/(pv) times 1F1B's activations.",
        "peak activations (units of one chunk)",
        DIVIDED,
        korthikanti,
        peak("interleaved"),
        corrected="field.interleaved.peak-bounded",
    ),
    stated(
        "field.interleaved.peak-bounded",
        "ours",
        "The first rank keeps that many, or all mv where there are no more.",
        "peak activations (units of one chunk)",
        DIVIDED,
        lambda at: min(korthikanti(at), Fraction(at["m"] * at["v"])),
        peak("interleaved"),
    ),
    stated(
        "field.bfs.bubble",
        f"{BREADTH} section 4",
        "Breadth-first order has the interleaved bubble, (p-1)/(vm), here for any m.",
        "idle_over_work",
        CHUNKED,
        overhead,
        idle_over_work("bfs"),
        corrected="field.bfs.bubble-filled",
    ),
    stated(
        "field.bfs.bubble-filled",
        f"{BREADTH} section 4",
        "With m >= p the bubble is (p-1)/(vm); p need not divide m.",
        "idle_over_work",
        FILLED,
        overhead,
        idle_over_work("bfs"),
    ),
    stated(
        "field.bfs.peak",
        f"{BREADTH} section 4",
        "Every rank keeps all m microbatches on all its v chunks.",
        "peak activations (units of one chunk)",
        CHUNKED,
        lambda at: Fraction(at["m"] * at["v"]),
        peak("bfs"),
    ),
)
