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
    case,
    domain,
    scope,
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
SEVERAL = "m % p == 0 and m > p"


def _units(
    text: str, where: str = "True", ranks: Ranges = (SMALL_RANKS, RANKS), **others: Ranges
) -> Domain:
    """At T_bwd = 2 T_fwd, with every m."""
    return scope(text, where, ranks=ranks, looked_at=EVERY, ratios=(), **others)


UNITS = "T_bwd = 2 T_fwd"
ALL, STEADY = _units(f"any m, {UNITS}"), _units(f"m >= 3p, {UNITS}", "m >= 3*p")
GROUPS = _units(f"p divides m, {UNITS}", "m % p == 0")
ORDERS = replace(GROUPS, text=f"{GROUPS.text}; every order", wide=None)
# The first rank and the last are neighbours where there are two.
LINKS = _units(
    "m in 2p 3p 4p, every rank r but the last",
    f"{SEVERAL} and r < p - 1",
    (SMALL_RANKS[1:], RANKS[1:]),
    r=(range(7), range(15)),
)
WINDOWS = domain(
    "p in 2 3 4 5 6 8; m <= 2p; every rank; m >= p",
    p=SMALL_RANKS, m="range(1, 2*p + 1)", r="range(p)", where="m >= p",
).widened("p in 2..16; m <= 4p; every rank; m >= p", p=RANKS, m="range(1, 4*p + 1)")  # fmt: skip
# With durations.
TIMED, TIMED_STEADY = scope("any m"), scope("m >= 3p", "m >= 3*p")
TIMED_FILLED, TIMED_EXCEEDING = scope("m >= p", "m >= p"), scope("m > p", "m > p")
TIMED_PAIRS = scope("m in 2p 3p 4p", SEVERAL)
TICKS = scope("tB = 2 tF", ratios=((1, 2), (2, 4), (3, 6)))


def _chunks(text: str, **others: Choice) -> Domain:
    """Figure 14, of two to four chunks, k of them recomputed."""
    rest = f"v in 2 3 4, {text}m = 3p"
    columns: dict[str, Choice] = {"p": (3, 4, 5, 6, 8), "v": (2, 3, 4), **others, "m": "(3*p,)"}
    return domain(f"p in 3 4 5 6 8, {rest}", columns).widened(f"3 <= p <= 16, {rest}", p=RANKS[1:])


PLAIN, RATIOS = _chunks(""), _chunks("1 <= k < v, ", k="range(1, v)")
# Section 6.
EIGHT = case(
    "48 layers on (PP, TP) = (8, 8), 64 microbatches of 2 (Figure 8)", p=8, m=64, layers=48
)
TENTHS = range(292, 317)
DEPTHS = domain(
    "the five systems of Figure 8(b); 29.2 to 31.6 of 32 GiB for activations and state, in tenths",
    system_layers=((0, 40), (1, 64), (2, 48), (3, 80), (4, 96)),
    tenths=TENTHS,
)
