"""Bidirectional pipelines and their V forms: Chimera, DualPipe, DualPipeV.

Symbols: p ranks, m microbatches of both directions together, tF tB tI tW the ticks of one action
(tB = tI + tW). DualPipe writes F&B for a forward and a backward that run as one; here it takes
tF + tB, since a schedule cannot know what the overlap saves, so its published bubble
(p/2-1)(F&B + B - 3W) reads (p/2-1)(tF + 2tI - tW). DualPipeV is DualPipe of 2p ranks cut in half.

Sources: Li & Hoefler, "Chimera" (SC 2021) section 3; DeepSeek-V3 technical report section 3.2.1 and
the published DualPipe and DualPipeV schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bubbleproof.theory.claims.claim import Claim, Domain, Params, Value, grid
from bubbleproof.theory.claims.field_schedules import (
    idle_ratio,
    idle_ticks,
    peak,
    peak_of_rank,
    span_idle,
    stated,
)

CHIMERA = "Chimera (SC 2021) section 3"
DEEPSEEK = "DeepSeek-V3 technical report section 3.2.1"
EVEN = (2, 4, 6, 8, 12, 16)


def is_within(at: Params) -> bool:
    return at["m"] <= 4 * at["p"] and (at["p"] <= 6 or at["m"] % at["p"] <= 2)


def is_units(at: Params) -> bool:
    return is_within(at) and at["m"] % at["p"] == 0


ANY = grid(
    "even p <= 8, 12, 16; m <= 4p (from p = 8 on only m within 2 above a multiple of p); tF and tB "
    "of 1 or 2",
    where=is_within,
    p=EVEN,
    m=range(1, 65),
    tF=(1, 2),
    tB=(1, 2),
)
EQUAL_UNITS = grid(
    "even p <= 8, 12, 16; m a multiple of p up to 4p; tF = tB = 1",
    where=is_units,
    p=EVEN,
    m=range(1, 65),
    tF=(1,),
    tB=(1,),
)
DOUBLE_UNITS = grid(
    "even p <= 8, 12, 16; m a multiple of p up to 4p; tF = 1, tB = 2",
    where=is_units,
    p=EVEN,
    m=range(1, 65),
    tF=(1,),
    tB=(2,),
)
RANKS_OF_UNITS = grid(
    "even p <= 8, 12, 16; m a multiple of p up to 4p; tF = tB = 1; every rank r",
    where=lambda at: is_units(at) and at["r"] < at["p"],
    p=EVEN,
    m=range(1, 65),
    r=range(16),
    tF=(1,),
    tB=(1,),
)


def chimera_bubble(at: Params) -> Fraction:
    """(p-2)/(2m+p-2)."""
    return Fraction(at["p"] - 2, 2 * at["m"] + at["p"] - 2)


CHIMERA_CLAIMS: tuple[Claim, ...] = (
    stated(
        "field.chimera.bubble",
        CHIMERA,
        "The bubble ratio is (D-2)/(2N+D-2), here for any m and any durations.",
        "idle_ratio",
        ANY,
        chimera_bubble,
        idle_ratio("chimera"),
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
        lambda at: Fraction(2 * (at["p"] - 2), 3 * at["m"] + 2 * (at["p"] - 2)),
        idle_ratio("chimera"),
        corrected="field.chimera.double-gaps",
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


def _dual_domain(name: str, relation: str, keeps: Callable[[Params], bool] | None = None) -> Domain:
    """The durations that ``keeps`` accepts on every p and m that the family takes, m <= 4p."""
    is_dualpipe = name == "dualpipe"

    def is_member(at: Params) -> bool:
        p, m = at["p"], at["m"]
        fits = 2 * p <= m <= 4 * p and (not is_dualpipe or m % 2 == 0) and (p <= 4 or m % p <= 2)
        return fits and (keeps is None or keeps(at))

    return grid(
        f"p in {'2 4 6 8 12' if is_dualpipe else '1 2 3 4 5 8'}; 2p <= m <= 4p"
        f"{', even m' if is_dualpipe else ''} (from p = 5 on only m within 2 above a multiple of "
        f"p); tF in 1 2 3, tI in 1 2 3, tW in 0 1 3; {relation}",
        where=is_member,
        p=(2, 4, 6, 8, 12) if is_dualpipe else (1, 2, 3, 4, 5, 8),
        m=range(2, 49),
        tF=(1, 2, 3),
        tI=(1, 2, 3),
        tW=(0, 1, 3),
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
            _dual_domain(name, "any durations"),
            _published(name),
            span_idle(name),
            corrected=f"field.{name}.bubble-general",
        ),
        stated(
            f"field.{name}.bubble-even",
            DEEPSEEK,
            f"{title} idles {formula} where an input gradient takes as long as a forward.",
            "span_idle (ticks)",
            _dual_domain(name, "tF = tI >= tW", is_even),
            _published(name),
            span_idle(name),
        ),
        stated(
            f"field.{name}.bubble-general",
            "ours",
            f"{title} idles h(tF + 2tI - tW) - min(tF, h(tI - tF)), h the hops of {formula}.",
            "span_idle (ticks)",
            _dual_domain(name, "tW <= tI", lambda at: at["tW"] <= at["tI"]),
            _general(name),
            span_idle(name),
        ),
        stated(
            f"field.{name}.peak",
            DEEPSEEK,
            f"{title} keeps {most} activations.",
            "peak activations (units)",
            _dual_domain(name, "tF = tI >= tW", is_even),
            lambda at: Fraction(at["p"] + 1 if name == "dualpipe" else 2 * at["p"] + 1),
            peak(name),
        ),
    )


CLAIMS: tuple[Claim, ...] = (
    *CHIMERA_CLAIMS,
    *_dual_claims("dualpipe", "DualPipe", "(p/2-1)(F&B + B - 3W)", "p+1"),
    *_dual_claims("dualpipev", "DualPipeV", "(p-1)(F&B + B - 3W)", "2p+1"),
)
