"""Bidirectional pipelines and their V forms: Chimera, DualPipe, DualPipeV.

Symbols: p ranks, m microbatches of both directions together, tF tB tI tW the ticks of one action
(tB = tI + tW). DualPipe writes F&B for a forward and a backward that run as one; here it takes
tF + tB, since a schedule cannot know what the overlap saves, so its published bubble
(p/2-1)(F&B + B - 3W) reads (p/2-1)(tF + 2tI - tW). DualPipeV is DualPipe of 2p ranks cut in half.

Sources: Li & Hoefler, "Chimera" (SC 2021) section 3; DeepSeek-V3 technical report section 3.2.1 and
the published DualPipe and DualPipeV schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_ratio
from bubbleproof.papers.claims.claim import Claim, Value, stated
from bubbleproof.papers.claims.domain import (
    Choice,
    Condition,
    Domain,
    Params,
    Ratios,
    domain,
    is_any,
    ratios_text,
)
from bubbleproof.papers.claims.measured_pipelines import (
    idle_ratio,
    idle_ticks,
    peak,
    peak_of_rank,
    span_idle,
)

CHIMERA = "Chimera (SC 2021) section 3"
DEEPSEEK = "DeepSeek-V3 technical report section 3.2.1"
FEW_EVEN, EVERY_EVEN = (2, 4, 6, 8, 12, 16), range(2, 17, 2)
EQUAL, DOUBLE = ((1, 1),), ((1, 2),)


def _units(ratios: Ratios, every: str = "", **rank: Choice) -> Domain:
    """Even p and the m <= 4p that p divides, ticks of the ratios; every rank r where asked for."""

    def cases(text: str, ranks: Iterable[int], wide: Domain | None) -> Domain:
        columns: dict[str, Choice] = {
            "p": ranks, "m": lambda at: (n * at["p"] for n in range(1, 5)), **rank, "tF_tB": ratios,
        }  # fmt: skip
        told = f"{text}; m a multiple of p up to 4p; {ratios_text(ratios)}{every}"
        return domain(told, columns, wide=wide)

    return cases("even p <= 8, 12, 16", FEW_EVEN, cases("even p <= 16", EVERY_EVEN, None))


ORDERS = domain(
    "p = 2; m <= 3; tF and tB in 1 2, every order", p=(2,), m=(1, 2, 3), tF=(1, 2), tB=(1, 2)
)
DOUBLE_ORDERS = domain(
    "p = 4; m in 4 8; tF:tB = 1:2, every order", p=(4,), m=(4, 8), tF=(1,), tB=(2,)
)
EQUAL_UNITS, DOUBLE_UNITS = _units(EQUAL), _units(DOUBLE)
RANKS_OF_UNITS = _units(EQUAL, "; every rank r", r=lambda at: range(at["p"]))


def chimera_bubble(at: Params) -> Fraction:
    """(p-2)/(2m+p-2)."""
    return Fraction(at["p"] - 2, 2 * at["m"] + at["p"] - 2)


def chimera_double(at: Params) -> Fraction:
    """(p-2)/(3m/2+p-2)."""
    return Fraction(2 * (at["p"] - 2), 3 * at["m"] + 2 * (at["p"] - 2))


CHIMERA_CLAIMS: tuple[Claim, ...] = (
    stated("field.chimera.bubble", CHIMERA,
           "Some order on Chimera's placement has the bubble ratio (D-2)/(2N+D-2), here for any m "
           "and any durations.", "least idle_ratio of any order", least_idle_ratio("chimera"), "==",
           chimera_bubble, ORDERS, "chimera.bubble-units"),
    stated("field.chimera.bubble-units", CHIMERA,
           "The bubble ratio is (D-2)/(2N+D-2) where D divides N and backwards last as forwards.",
           "idle_ratio", idle_ratio("chimera"), "==", chimera_bubble, EQUAL_UNITS),
    stated("field.chimera.double", CHIMERA,
           "With backwards twice as long the bubble ratio is (D-2)/(3N/2+D-2), here for units "
           "joined directly.", "idle_ratio", idle_ratio("chimera"), "==", chimera_double,
           DOUBLE_UNITS, "chimera.double-gaps"),
    stated("field.chimera.double-some", f"{CHIMERA}, for units joined as they fit best",
           "With backwards twice as long some order on Chimera's placement has at most the bubble "
           "ratio (D-2)/(3N/2+D-2).", "least idle_ratio of any order", least_idle_ratio("chimera"),
           "<=", chimera_double, DOUBLE_ORDERS),
    stated("field.chimera.double-gaps", "ours",
           "Joined directly, each of the N/D units adds a gap of D-2 ticks to the first D-2.",
           "idle ticks of a rank", idle_ticks("chimera"), "==",
           lambda at: (at["m"] // at["p"] + 1) * (at["p"] - 2), DOUBLE_UNITS),
    stated("field.chimera.peak", CHIMERA,
           "Ranks keep between D/2+1 activations at the ends and D in the middle.",
           "peak activations of rank r (units)", peak_of_rank("chimera"), "==",
           lambda at: at["p"] // 2 + 1 + min(at["r"], at["p"] - 1 - at["r"]), RANKS_OF_UNITS),
)  # fmt: skip


def _dual(name: str, relation: str, keeps: Condition = is_any) -> Domain:
    """The durations that ``keeps`` accepts on the p and m that the family takes, m <= 4p."""
    is_dualpipe = name == "dualpipe"
    few = FEW_EVEN[:5] if is_dualpipe else (2, 3, 4, 5, 8)
    every = EVERY_EVEN if is_dualpipe else range(2, 17)
    even = ", even m" if is_dualpipe else ""

    def cases(
        text: str, ranks: Iterable[int], counts: Callable[[int], Iterable[int]], wide: Domain | None
    ) -> Domain:
        return domain(
            f"{text}; tF in 1 2 3, tI in 1 2 3, tW in 0 1 3; {relation}",
            p=ranks,
            m=lambda at: counts(at["p"]),
            tF=(1, 2, 3),
            tI=(1, 2, 3),
            tW=(0, 1, 3),
            where=keeps,
            wide=wide,
        )

    def accepted(p: int) -> range:
        return range(2 * p, 4 * p + 1, 2 if is_dualpipe else 1)

    return cases(
        f"p in {' '.join(map(str, few))}; 2p <= m <= 4p{even} (from p = 5 on only m within 2 "
        "above a multiple of p)",
        few,
        lambda p: (m for m in accepted(p) if p <= 4 or m % p <= 2),
        cases(
            f"{'even p' if is_dualpipe else '2 <= p'} <= 16; 2p <= m <= 4p{even}, which is all "
            "that the schedule takes of m <= 4p",
            every,
            accepted,
            None,
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
        stated(f"field.{name}.bubble", DEEPSEEK, f"{title} idles {formula}, here at any durations.",
               "span_idle (ticks)", span_idle(name), "==", _published(name),
               _dual(name, "any durations"), f"{name}.bubble-general"),
        stated(f"field.{name}.bubble-even", DEEPSEEK,
               f"{title} idles {formula} where an input gradient takes as long as a forward.",
               "span_idle (ticks)", span_idle(name), "==", _published(name),
               _dual(name, "tF = tI >= tW", is_even)),
        stated(f"field.{name}.bubble-general", "ours",
               f"{title} idles h(tF + 2tI - tW) - min(tF, h(tI - tF)), h the hops of {formula}.",
               "span_idle (ticks)", span_idle(name), "==", _general(name),
               _dual(name, "tW <= tI", lambda at: at["tW"] <= at["tI"])),
        stated(f"field.{name}.peak", DEEPSEEK, f"{title} keeps {most} activations.",
               "peak activations (units)", peak(name), "==",
               lambda at: at["p"] + 1 if name == "dualpipe" else 2 * at["p"] + 1,
               _dual(name, "tF = tI >= tW", is_even)),
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    *CHIMERA_CLAIMS,
    *_dual_claims("dualpipe", "DualPipe", "(p/2-1)(F&B + B - 3W)", "p+1"),
    *_dual_claims("dualpipev", "DualPipeV", "(p-1)(F&B + B - 3W)", "2p+1"),
)
