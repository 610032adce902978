"""Bidirectional pipelines and their V forms: Chimera, DualPipe, DualPipeV.

Symbols: p ranks, m microbatches of both directions together, tF tB tI tW the ticks of one action
(tB = tI + tW). DualPipe writes F&B for a forward and a backward that run as one; here it takes
tF + tB, since a schedule cannot know what the overlap saves, so its published bubble
(p/2-1)(F&B + B - 3W) reads (p/2-1)(tF + 2tI - tW). DualPipeV is DualPipe of 2p ranks cut in half.

Sources: Li & Hoefler, "Chimera" (SC 2021) section 3; DeepSeek-V3 technical report section 3.2.1 and
the published DualPipe and DualPipeV schedules.
"""

from __future__ import annotations

from bubbleproof.papers.claims.any_order import least_idle_ratio
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    RANKS,
    SMALL_RANKS,
    Choice,
    Domain,
    Ratios,
    domain,
    ratios_text,
)
from bubbleproof.papers.claims.measured_pipelines import (
    idle_ratio,
    idle_ticks,
    peak,
    peak_of_rank,
    span_idle,
)
from bubbleproof.papers.claims.reading import EQUAL_TICKS, TWICE, Premise

CHIMERA = "Chimera (SC 2021) section 3"
DEEPSEEK = "DeepSeek-V3 technical report section 3.2.1"
FEW_EVEN, EVERY_EVEN = (2, 4, 6, 8), range(2, 17, 2)
EQUAL, DOUBLE = ((1, 1),), ((1, 2),)


def _units(ratios: Ratios, every: str = "", **rank: Choice) -> Domain:
    """Even p and the m <= 4p that p divides, ticks of the ratios; every rank r where asked for."""
    rest = f"m a multiple of p up to 4p; {ratios_text(ratios)}{every}"
    columns: dict[str, Choice] = {"p": FEW_EVEN, "m": "(p, 2*p, 3*p, 4*p)", **rank, "tF_tB": ratios}
    return domain(f"even p <= 8; {rest}", columns).widened(f"even p <= 16; {rest}", p=EVERY_EVEN)


DOUBLE_ORDERS = domain(
    "p = 4; m in 4 8; tF:tB = 1:2, every order", p=(4,), m=(4, 8), tF=(1,), tB=(2,)
)
EQUAL_UNITS, DOUBLE_UNITS = _units(EQUAL), _units(DOUBLE)
RANKS_OF_UNITS = _units(EQUAL, "; every rank r", r="range(p)")


WHOLE = Premise(text="D divides N", cases="m % p == 0")
ONE_BY_ONE = Premise(text="tF = tI >= tW", cases="tF == tI >= tW")
CHIMERA_DOUBLE = "(p-2)/(3*m/2 + p-2)"


_CHIMERA: tuple[PaperClaim, ...] = (
    stated("field.chimera.bubble", CHIMERA, "The bubble ratio is (D-2)/(2N+D-2).", "idle_ratio",
           idle_ratio("chimera"), "==", "(p-2)/(2*m + p-2)", EQUAL_UNITS,
           premises=[EQUAL_TICKS, WHOLE]),
    read_as("field.chimera.double", CHIMERA,
            "With backwards twice as long the bubble ratio is (D-2)/(3N/2+D-2).", "idle_ratio", [
                reading("some order, at most", "units joined as they fit best",
                        least_idle_ratio("chimera"), "<=", CHIMERA_DOUBLE, DOUBLE_ORDERS,
                        [TWICE, WHOLE]),
                reading("units joined directly", "one unit after the other",
                        idle_ratio("chimera"), "==", CHIMERA_DOUBLE, DOUBLE_UNITS,
                        [TWICE, WHOLE]),
            ]),
    stated("field.chimera.double-gaps", "ours",
           "Joined directly, each of the N/D units adds a gap of D-2 ticks to the first D-2.",
           "idle ticks of a rank", idle_ticks("chimera"), "==", "(m//p + 1)*(p-2)", DOUBLE_UNITS),
    stated("field.chimera.peak", CHIMERA,
           "Ranks keep between D/2+1 activations at the ends and D in the middle.",
           "peak activations of rank r (units)", peak_of_rank("chimera"), "==",
           "p//2 + 1 + min(r, p-1-r)", RANKS_OF_UNITS),
)  # fmt: skip


def _dual(name: str, relation: str, where: str) -> Domain:
    """The durations that ``where`` accepts on the p and m that the family takes, m <= 4p."""
    is_two = name == "dualpipe"
    few, every, step = (FEW_EVEN, EVERY_EVEN, 2) if is_two else (SMALL_RANKS, RANKS, 1)
    rest = f"2p <= m <= 4p{', even m' if is_two else ''}; tF in 1 2 3, tI in 1 2 3, tW in 0 1 3; "
    return domain(
        f"{'even p' if is_two else 'p'} <= {few[-1]}; {rest}{relation}",
        p=few, m=f"range(2*p, 4*p + 1, {step})", tF=(1, 2, 3), tI=(1, 2, 3), tW=(0, 1, 3),
        where=where,
    ).widened(f"{'even p' if is_two else 'p'} <= 16; {rest}{relation}", p=every)  # fmt: skip


def _dual_claims(
    name: str, title: str, formula: str, hops: str, most: str
) -> tuple[PaperClaim, ...]:
    """``hops`` and ``most`` in p; the published formula reads hops(tF + 2tI - tW) here."""
    published = f"({hops})*(tF + 2*tI - tW)"
    even = _dual(name, "tF = tI >= tW", "tF == tI >= tW")
    return (
        stated(f"field.{name}.bubble", DEEPSEEK, f"{title} idles {formula}.", "span_idle",
               span_idle(name), "==", published, even, premises=[ONE_BY_ONE]),
        stated(f"field.{name}.bubble-general", "ours",
               f"{title} idles h(tF + 2tI - tW) - min(tF, h(tI - tF)), h the hops of {formula}.",
               "span_idle (ticks)", span_idle(name), "==",
               f"{published} - min(tF, ({hops})*(tI - tF))", _dual(name, "tW <= tI", "tW <= tI")),
        stated(f"field.{name}.peak", DEEPSEEK, f"{title} keeps {most} activations.",
               "peak activations (units)", peak(name), "==", most.replace("2p", "2*p"), even),
    )  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (
    *_CHIMERA,
    *_dual_claims("dualpipe", "DualPipe", "(p/2-1)(F&B + B - 3W)", "p//2 - 1", "p+1"),
    *_dual_claims("dualpipev", "DualPipeV", "(p-1)(F&B + B - 3W)", "p-1", "2p+1"),
)
