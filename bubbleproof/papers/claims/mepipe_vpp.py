"""VPP (interleaved 1F1B) of MEPipe's Table 3: its least warm-up, and fewer samples than ranks.

Symbols: p ranks, m microbatches (the paper's n), v chunks, r a rank, A the activations of one
sample. Table 3's memory of VPP, 1 + (p-1)/(pv), is that of Megatron's warm-up, two forwards per hop
to the last rank; with one the same order (``mepipe_vpp_orders``) is as fast and keeps A.

Every order with n <= p takes (vp + n-1)(tF + tB) or more: the last stage waits vp-1 forwards, has
n forwards and backwards to run, and vp-1 backwards follow. VPP takes no longer.

Source: Sun et al., "MEPipe" (EuroSys 2025) Table 3; Narayanan et al. (SC 2021) section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from bubbleproof.papers.claims.claim import Claim, Domain, listed
from bubbleproof.papers.claims.field_schedules import constant, idle_ratio, stated
from bubbleproof.papers.claims.mepipe_table3 import SOURCE, hanayo_few, ratio
from bubbleproof.papers.claims.mepipe_vpp_orders import (
    at_least_warm_up,
    fewest_forwards,
    least,
    least_peak,
    runs,
)
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.scope import Scope, spelled

RATIOS = ((1, 1), (1, 2), (2, 1))
Counts = Callable[[int], set[int]]
CHUNKS = (2, 4)
FEW_RANKS, ALL_RANKS = (2, 3, 4), (2, 3, 4, 5, 7, 11, 16)


def few(p: int) -> set[int]:
    """n < p: 1, p/2, p-1."""
    return {1, p // 2, p - 1}


def many(p: int) -> set[int]:
    """n that p divides: p, 2p, 4p."""
    return {p, 2 * p, 4 * p}


def both(p: int) -> set[int]:
    return few(p) | many(p)


def _cases(ranks: tuple[int, ...], text: str, counts: Counts, *, has_rank: bool) -> Domain:
    """The m of ``counts`` on each p, two v, three ratios; or one, and some ranks r."""
    ratios = RATIOS[1:2] if has_rank else RATIOS
    names = ("p", "m", "v", *(["r"] if has_rank else []), "tF", "tB")

    def rows() -> Iterator[Row]:
        for p in ranks:
            some: list[Row] = [(r,) for r in sorted({0, p // 2, p - 1})] if has_rank else [()]
            for m, v, r, ticks in product(sorted(counts(p)), CHUNKS, some, ratios):
                yield (p, m, v, *r, *ticks)

    parts = [
        f"p in {spelled(ranks)}",
        f"n in {text}",
        f"v in {spelled(CHUNKS)}",
        *(["r in 0 p/2 p-1"] if has_rank else []),
        f"tF:tB in {' '.join(f'{f}:{b}' for f, b in ratios)}",
    ]
    return listed("; ".join(parts), names, rows)


def _scope(text: str, counts: Counts, *, has_rank: bool = False) -> Scope:
    small, wide = (
        _cases(ranks, text, counts, has_rank=has_rank) for ranks in (FEW_RANKS, ALL_RANKS)
    )
    return Scope(small=small, wide=wide)


FEW = _scope("1 p/2 p-1", few)
MANY = _scope("p 2p 4p", many)
BOTH = _scope("1 p/2 p-1 p 2p 4p", both, has_rank=True)


CLAIMS: tuple[Claim, ...] = (
    stated(
        "mepipe.table3.vpp.warm-up",
        "ours, for MEPipe Table 3",
        "Rank r of VPP needs (v-1)g + min(p-r, g) forwards before its first backward, g = min(n, "
        "p): with one fewer a step takes longer.",
        "least forwards of rank r in the makespan of Megatron's order",
        BOTH,
        lambda at: Fraction(least(at, at["r"])),
        fewest_forwards,
    ),
    stated(
        "mepipe.table3.vpp.least-bubble",
        "ours, for MEPipe Table 3",
        "So warmed up on every rank VPP still has the bubble ratio (p-1)/(p-1+nv).",
        "idle_ratio",
        MANY,
        lambda at: ratio(at, at["m"] * at["v"]),
        lambda at: at_least_warm_up(at).idle_ratio,
    ),
    stated(
        "mepipe.table3.vpp.least-memory",
        "ours, for MEPipe Table 3",
        "So warmed up VPP keeps A, not (1 + (p-1)/(pv)) A.",
        "peak activations of the fullest rank over A",
        MANY,
        constant(Fraction(1)),
        least_peak,
    ),
    stated(
        "mepipe.table3.vpp.few",
        SOURCE,
        "VPP does not support n < p (read as: its order, one group of n samples, does not run).",
        "1 where it runs",
        FEW,
        constant(Fraction(0)),
        runs,
        corrected="mepipe.table3.vpp.bubble-few",
    ),
    stated(
        "mepipe.table3.vpp.bubble-few",
        "ours, for MEPipe Table 3",
        "With n < p one group of n samples has the bubble ratio (vp+n-1-nv)/(vp+n-1), Hanayo's, at "
        "any durations.",
        "idle_ratio",
        FEW,
        hanayo_few,
        idle_ratio("interleaved"),
    ),
    stated(
        "mepipe.table3.vpp.bubble-few-least",
        "ours, for MEPipe Table 3",
        "With n < p the least warm-up has that bubble ratio.",
        "idle_ratio",
        FEW,
        hanayo_few,
        lambda at: at_least_warm_up(at).idle_ratio,
    ),
    stated(
        "mepipe.table3.vpp.memory-few",
        "ours, for MEPipe Table 3",
        "With n < p the least warm-up keeps n/p A.",
        "peak activations of the fullest rank over A",
        FEW,
        lambda at: Fraction(at["m"], at["p"]),
        least_peak,
    ),
)
