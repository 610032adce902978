"""Bidirectional pipelines and their V forms: Chimera, DualPipe, DualPipeV.

Symbols: p ranks, m microbatches of both directions together, tF tB tI tW the ticks of one action
(tB = tI + tW). DualPipe writes F&B for a forward and a backward that run as one; here it takes
tF + tB, since a schedule cannot know what the overlap saves, so its published bubble
(p/2-1)(F&B + B - 3W) reads (p/2-1)(tF + 2tI - tW). DualPipeV is DualPipe of 2p ranks cut in half.

Sources: Li & Hoefler, "Chimera" (SC 2021) section 3; DeepSeek-V3 technical report section 3.2.1 and
the published DualPipe and DualPipeV schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product

from bubbleproof.papers.claims.any_order import least_idle_ratio
from bubbleproof.papers.claims.claim import (
    Claim,
    Domain,
    Params,
    Relation,
    Value,
    grid,
    listed,
)
from bubbleproof.papers.claims.field_schedules import (
    idle_ratio,
    idle_ticks,
    peak,
    peak_of_rank,
    span_idle,
    stated,
)
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.scope import Scope

CHIMERA = "Chimera (SC 2021) section 3"
DEEPSEEK = "DeepSeek-V3 technical report section 3.2.1"
FEW_EVEN, EVERY_EVEN = (2, 4, 6, 8, 12, 16), range(2, 17, 2)
EQUAL, DOUBLE = ((1, 1),), ((1, 2),)
Condition = Callable[[int, int], bool]


def is_any(p: int, m: int) -> bool:
    del p, m
    return True


def is_units(p: int, m: int) -> bool:
    return m % p == 0


def _even(
    text: str,
    ranks: Iterable[int],
    where: Condition,
    ratios: Sequence[tuple[int, int]],
    *ranged: str,
) -> Domain:
    """Even p, the m <= 4p that ``where`` takes, ticks of the ratios; every rank r where ranged."""

    def rows() -> Iterator[Row]:
        for p in ranks:
            for m in (m for m in range(1, 4 * p + 1) if where(p, m)):
                for rank in product(*(range(p) for _ in ranged)):
                    yield from ((p, m, *rank, *ticks) for ticks in ratios)

    spelled = " ".join(f"{forward}:{backward}" for forward, backward in ratios)
    every = "; every rank r" if ranged else ""
    return listed(f"{text}; tF:tB in {spelled}{every}", ("p", "m", *ranged, "tF", "tB"), rows)


def _units(ratios: Sequence[tuple[int, int]], *ranged: str) -> Scope:
    """The m that p divides."""
    few, every = "even p <= 8, 12, 16", "even p <= 16"
    of = "m a multiple of p up to 4p"
    return Scope(
        small=_even(f"{few}; {of}", FEW_EVEN, is_units, ratios, *ranged),
        wide=_even(f"{every}; {of}", EVERY_EVEN, is_units, ratios, *ranged),
    )


ORDERS = grid(
    "p = 2; m <= 3; tF and tB in 1 2, every order", p=(2,), m=(1, 2, 3), tF=(1, 2), tB=(1, 2)
)
DOUBLE_ORDERS = grid(
    "p = 4; m in 4 8; tF:tB = 1:2, every order", p=(4,), m=(4, 8), tF=(1,), tB=(2,)
)
EQUAL_UNITS, DOUBLE_UNITS, RANKS_OF_UNITS = _units(EQUAL), _units(DOUBLE), _units(EQUAL, "r")


def chimera_bubble(at: Params) -> Fraction:
    """(p-2)/(2m+p-2)."""
    return Fraction(at["p"] - 2, 2 * at["m"] + at["p"] - 2)


def chimera_double(at: Params) -> Fraction:
    """(p-2)/(3m/2+p-2)."""
    return Fraction(2 * (at["p"] - 2), 3 * at["m"] + 2 * (at["p"] - 2))


CHIMERA_CLAIMS: tuple[Claim, ...] = (
    stated(
        "field.chimera.bubble",
        CHIMERA,
        "Some order on Chimera's placement has the bubble ratio (D-2)/(2N+D-2), here for any m and "
        "any durations.",
        "least idle_ratio of any order",
        ORDERS,
        chimera_bubble,
        least_idle_ratio("chimera"),
        corrected="field.chimera.bubble-units",
    ),
    stated(
        "field.chimera.bubble-units",
        CHIMERA,
        "The bubble ratio is (D-2)/(2N+D-2) where D divides N and backwards last as forwards.",
        "idle_ratio",
        EQUAL_UNITS,
        chimera_bubble,
        idle_ratio("chimera"),
    ),
    stated(
        "field.chimera.double",
        CHIMERA,
        "With backwards twice as long the bubble ratio is (D-2)/(3N/2+D-2), here for units joined "
        "directly.",
        "idle_ratio",
        DOUBLE_UNITS,
        chimera_double,
        idle_ratio("chimera"),
        corrected="field.chimera.double-gaps",
    ),
    stated(
        "field.chimera.double-some",
        f"{CHIMERA}, for units joined as they fit best",
        "With backwards twice as long some order on Chimera's placement has at most the bubble "
        "ratio (D-2)/(3N/2+D-2).",
        "least idle_ratio of any order",
        DOUBLE_ORDERS,
        chimera_double,
        least_idle_ratio("chimera"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "field.chimera.double-gaps",
        "ours",
        "Joined directly, each of the N/D units adds a gap of D-2 ticks to the first D-2.",
        "idle ticks of a rank",
        DOUBLE_UNITS,
        lambda at: Fraction((at["m"] // at["p"] + 1) * (at["p"] - 2)),
        idle_ticks("chimera"),
    ),
    stated(
        "field.chimera.peak",
        CHIMERA,
        "Ranks keep between D/2+1 activations at the ends and D in the middle.",
        "peak activations of rank r (units)",
        RANKS_OF_UNITS,
        lambda at: Fraction(at["p"] // 2 + 1 + min(at["r"], at["p"] - 1 - at["r"])),
        peak_of_rank("chimera"),
    ),
)


def _dual(name: str, relation: str, keeps: Callable[[Params], bool] | None = None) -> Scope:
    """The durations that ``keeps`` accepts on the p and m that the family takes, m <= 4p."""
    is_dualpipe = name == "dualpipe"
    few, every = (FEW_EVEN[:5], EVERY_EVEN) if is_dualpipe else ((2, 3, 4, 5, 8), range(2, 17))
    even = ", even m" if is_dualpipe else ""
    ticks = "tF in 1 2 3, tI in 1 2 3, tW in 0 1 3"

    def domain(text: str, ranks: Iterable[int], where: Condition) -> Domain:
        def rows() -> Iterator[Row]:
            for p in ranks:
                for m in range(2 * p, 4 * p + 1, 2 if is_dualpipe else 1):
                    for row in product((p,), (m,), (1, 2, 3), (1, 2, 3), (0, 1, 3)):
                        at = dict(zip(names, row, strict=True))
                        if where(p, m) and (keeps is None or keeps(at)):
                            yield row

        names = ("p", "m", "tF", "tI", "tW")
        return listed(f"{text}; {ticks}; {relation}", names, rows)

    return Scope(
        small=domain(
            f"p in {' '.join(map(str, few))}; 2p <= m <= 4p{even} (from p = 5 on only m within 2 "
            "above a multiple of p)",
            few,
            lambda p, m: p <= 4 or m % p <= 2,
        ),
        wide=domain(
            f"{'even p' if is_dualpipe else '2 <= p'} <= 16; 2p <= m <= 4p{even}, which is all "
            "that the schedule takes of m <= 4p",
            every,
            is_any,
        ),
    )


def is_even(at: Params) -> bool:
    return at["tF"] == at["tI"] >= at["tW"]


def _hops(name: str, at: Params) -> int:
    return at["p"] // 2 - 1 if name == "dualpipe" else at["p"] - 1


def _published(name: str) -> Value:
    """h(F&B + B - 3W) with F&B = tF + tB."""

    def value(at: Params) -> Fraction:
        backward = at["tI"] + at["tW"]
        return Fraction(_hops(name, at) * (at["tF"] + 2 * backward - 3 * at["tW"]))

    return value


def _general(name: str) -> Value:
    """h(tF + 2tI - tW) - min(tF, h(tI - tF))."""

    def value(at: Params) -> Fraction:
        hops, forward, inputs = _hops(name, at), at["tF"], at["tI"]
        gain = min(forward, hops * (inputs - forward))
        return Fraction(hops * (forward + 2 * inputs - at["tW"]) - gain)

    return value


def _dual_claims(name: str, title: str, formula: str, most: str) -> tuple[Claim, ...]:
    return (
        stated(
            f"field.{name}.bubble",
            DEEPSEEK,
            f"{title} idles {formula}, here at any durations.",
            "span_idle (ticks)",
            _dual(name, "any durations"),
            _published(name),
            span_idle(name),
            corrected=f"field.{name}.bubble-general",
        ),
        stated(
            f"field.{name}.bubble-even",
            DEEPSEEK,
            f"{title} idles {formula} where an input gradient takes as long as a forward.",
            "span_idle (ticks)",
            _dual(name, "tF = tI >= tW", is_even),
            _published(name),
            span_idle(name),
        ),
        stated(
            f"field.{name}.bubble-general",
            "ours",
            f"{title} idles h(tF + 2tI - tW) - min(tF, h(tI - tF)), h the hops of {formula}.",
            "span_idle (ticks)",
            _dual(name, "tW <= tI", lambda at: at["tW"] <= at["tI"]),
            _general(name),
            span_idle(name),
        ),
        stated(
            f"field.{name}.peak",
            DEEPSEEK,
            f"{title} keeps {most} activations.",
            "peak activations (units)",
            _dual(name, "tF = tI >= tW", is_even),
            lambda at: Fraction(at["p"] + 1 if name == "dualpipe" else 2 * at["p"] + 1),
            peak(name),
        ),
    )


CLAIMS: tuple[Claim, ...] = (
    *CHIMERA_CLAIMS,
    *_dual_claims("dualpipe", "DualPipe", "(p/2-1)(F&B + B - 3W)", "p+1"),
    *_dual_claims("dualpipev", "DualPipeV", "(p-1)(F&B + B - 3W)", "2p+1"),
)
