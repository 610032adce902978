"""The cases of T-Pipe's claims: p ranks, m microbatches, v chunks, r a rank, tF and tB ticks.

The paper speaks of a steady state without saying how many microbatches that takes; "steady" is
m >= 3p here. Times are claimed at tB = 2 tF, for which T-Pipe's round of 6 units is made
(Appendix A); peaks follow from the orders alone and are claimed at any durations.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.claims.domain import (
    EVERY,
    RANKS,
    Choice,
    Domain,
    Ranges,
    Words,
    among,
    case,
    domain,
    scope,
    worded,
)
from bubbleproof.papers.claims.reading import Premise

FILLED_PIPE = Premise(text="m >= p", cases="m >= p")
EXCEEDING = Premise(text="m > p", cases="m > p")
STEADY_STATE = Premise(text="a steady state, m >= 3p", cases="m >= 3*p")
GROUPED = Premise(text="p divides m", cases="m % p == 0")
SEVERAL_GROUPS = Premise(text="p divides m, and m > p", cases="m % p == 0 and m > p")
ROOM = Premise(
    text="0.4 to 2.8 of a GPU's 32 GiB hold what nothing here counts", cases="292 <= tenths <= 316"
)
SMALL_RANKS = (2, 3, 4, 5, 6, 8)
V = ((2, 3), (2, 3, 4))
DIVIDED, SEVERAL = "m % p == 0", "m % p == 0 and m > p"


def _units(
    text: str, where: str = "True", ranks: Ranges = (SMALL_RANKS, RANKS), **others: Ranges
) -> Domain:
    """At T_bwd = 2 T_fwd, with every m."""
    return scope(text, where, ranks=ranks, looked_at=EVERY, ratios=(), **others)


UNITS = "T_bwd = 2 T_fwd"
ALL, STEADY = _units(f"any m, {UNITS}"), _units(f"m >= 3p, {UNITS}", "m >= 3*p")
GROUPS = _units(f"p divides m, {UNITS}", DIVIDED)
TO_6 = _units(f"p divides m, {UNITS}", DIVIDED, (SMALL_RANKS[:-1], RANKS[:5]))
PAIRS = _units(f"m in 2p 3p 4p, {UNITS}", SEVERAL)
ORDERS = replace(GROUPS, text=f"{GROUPS.text}; every order", wide=None)
# The first rank and the last are neighbours where there are two.
LINKS = _units(
    "m in 2p 3p 4p, every rank r but the last",
    f"{SEVERAL} and r < p - 1",
    (SMALL_RANKS[1:], RANKS[1:]),
    r=(range(7), range(15)),
)
# With durations.
TIMED, TIMED_STEADY = scope("any m"), scope("m >= 3p", "m >= 3*p")
TIMED_FILLED, TIMED_EXCEEDING = scope("m >= p", "m >= p"), scope("m > p", "m > p")
TIMED_PAIRS, CHUNKS = scope("m in 2p 3p 4p", SEVERAL), scope("p divides m", DIVIDED, v=V)
DEEP = scope("m in 2p 3p 4p", SEVERAL, v=V)
TICKS = scope("tB = 2 tF", ratios=((1, 2), (2, 4), (3, 6)))


def _windows(condition: str, where: str) -> Domain:
    def counts(most: int) -> dict[str, Words]:
        return {
            "p": among("p", SMALL_RANKS if most == 2 else RANKS),
            "m": (f"m <= {most}p", f"range(1, {most}*p + 1)"),
        }

    every_rank: Words = ("every rank", "range(p)")
    return worded({**counts(2), "r": every_rank}, condition, where, counts(4))


WINDOWS, ANY = _windows("m >= p", "m >= p"), _windows("any m", "True")
LAST = domain("2 <= p <= 16, m = p, rank 0", p=RANKS, m="(p,)", r=(0,))


def delays(first: int, last: int) -> Domain:
    """One case per p with enough microbatches for the rounds between T-Recomp's chunks."""
    text = f"{first} <= p <= {last}, m = floor(p/3) + 4"
    return domain(text, p=range(first, last + 1), m="(p//3 + 4,)")


# Figure 14, of three and four chunks, k of them recomputed.
_WIDE = range(3, 17)


def _chunks(text: str, **others: Choice) -> Domain:
    def worded(ranks: str) -> str:
        return f"{ranks}, v in 2 3 4, {text}m = 3p"

    columns: dict[str, Choice] = {"p": (3, 4, 5, 6, 8), "v": (2, 3, 4), **others, "m": "(3*p,)"}
    return domain(worded("p in 3 4 5 6 8"), columns).widened(worded("3 <= p <= 16"), p=_WIDE)


PLAIN, RATIOS = _chunks(""), _chunks("1 <= k < v, ", k="range(1, v)")
EIGHT_FINER = domain("p = 8, v in 3 4, m = 24", p=(8,), v=(3, 4), m=(24,))
MANY_FINER = domain("3 <= p <= 12, v in 3 4, m = 3p", p=range(3, 13), v=(3, 4), m="(3*p,)")
PARTS = domain(
    "p = 8, m = 32 (Figure 10's global batch, microbatches of 1), 6 or 12 parts a rank",
    p=(8,),
    m=(32,),
    v=(6, 12),
)
# Section 6.
EIGHT = case(
    "48 layers on (PP, TP) = (8, 8), 64 microbatches of 2 (Figure 8)", p=8, m=64, layers=48
)
FOUR = case("p = 4, m = 32", p=4, m=32)
BATCH_32 = case("p = 8, m = 32 (Figure 10's global batch 32, microbatches of 1)", p=8, m=32)
TENTHS = range(292, 317)
ROOMS = domain("29.2 to 31.6 of 32 GiB for activations and state, in tenths", tenths=TENTHS)
DEPTHS = domain(
    "the five systems of Figure 8(b); 29.2 to 31.6 of 32 GiB for activations and state, in tenths",
    system_layers=((0, 40), (1, 64), (2, 48), (3, 80), (4, 96)),
    tenths=TENTHS,
)
