"""The zero-bubble family's formulas: ZB-H1, ZB-H2, ZB-V, V-Half and V-Min.

Symbols: p ranks, m microbatches, tF tI tW the ticks of a forward, an input and a weight gradient
(the papers write TF, TB, TW). The bubble is span_idle: idle ticks within a rank's own span. For the
V-shaped schedules an action is one of two chunks, and 1F1B at the same granularity idles
2(p-1)(tF+tI+tW) chunk ticks and holds 2p chunk units. The orders of V-Half and V-Min are those
of their authors' generator at unit ticks (``theory.families.reordering``).

Sources: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024; ZB-V in its extended version);
Qi et al., "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import RANKS, SMALL_RANKS, Domain, Params
from bubbleproof.papers.claims.measured_pipelines import measures, peak, span_idle
from bubbleproof.papers.claims.reading import LARGE, UP_TO, Exact, NumberOf, Premise
from bubbleproof.papers.field.field_first import FULL_PIPE, shapes

ZERO_BUBBLE = "Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.3"
ZB_V = "Zero Bubble Pipeline Parallelism (extended version), ZB-V"
CONTROLLABLE = "Pipeline Parallelism with Controllable Memory (NeurIPS 2024) section 3"
TICKS, THREE = ("tF", "tI", "tW"), (1, 2, 3)


def _split(condition: str, where: str) -> Domain:
    """Split backwards: tF, tI and tW from 1 to 3."""
    ticks = dict.fromkeys(TICKS, (THREE, THREE))
    return shapes(condition, where, (), (SMALL_RANKS, RANKS), **ticks)


def _unit(condition: str, where: str) -> Domain:
    """The same at tF = tI = tW = 1, on more ranks."""
    return shapes(condition, where, (), **dict.fromkeys(TICKS, ((1,), (1,))))


UNIT_FILLED = _unit("m >= p", "m >= p")
UNIT_FULL = _unit("m >= 2p-1", "m >= 2*p-1")
UNIT_LONG = _unit("m >= 2p", "m >= 2*p")
EVEN = Premise(text="tF = tI = tW", cases="tF == tI == tW")
TWICE_PIPE = Premise(text="m >= 2p", cases="m >= 2*p")
LONG_PIPE = Premise(text="m >= 2p-1", cases="m >= 2*p - 1")


def _one_f_one_b(at: Params) -> dict[str, int]:
    """1F1B over the same work: an action is both chunks of a V."""
    return {"p": at["p"], "m": at["m"], "tF": 2 * at["tF"], "tB": 2 * (at["tI"] + at["tW"])}


def part_of_1f1b(part: str) -> NumberOf:
    """The part of 1F1B's bubble, measured on 1F1B."""
    return lambda at: Fraction(part) * measures("1f1b", _one_f_one_b(at)).span_idle


def peak_part(name: str) -> Exact:
    """A V-shaped schedule's peak over 1F1B's, both measured; 1F1B's microbatch is two units."""

    def value(at: Params) -> Fraction:
        plain = 2 * max(measures("1f1b", _one_f_one_b(at)).peak_activations)
        return Fraction(max(measures(name, at).peak_activations), plain)

    return value


def _v_claims(
    name: str, title: str, memory: str, near: str, exact: str, bubble: str
) -> tuple[PaperClaim, ...]:
    """``memory`` of 1F1B's, within ``near``; ``exact`` what the order has; ``bubble`` at most."""
    return (
        stated(f"field.{name}.peak", CONTROLLABLE,
               f"{title} holds {memory} of 1F1B's activations: as p grows, within {near} of it.",
               "distance of peak over 1F1B's peak",
               lambda at: abs(peak_part(name)(at) - Fraction(memory)), "<=", near, UNIT_FILLED,
               premises=[LARGE, FULL_PIPE]),
        stated(f"field.{name}.peak-rounded", "ours, for m >= p",
               f"{title} holds that part of p microbatches and up to one or two more.",
               "peak over 1F1B's peak", peak_part(name), "==", exact, UNIT_FILLED,
               premises=[FULL_PIPE]),
        stated(f"field.{name}.bubble", CONTROLLABLE,
               f"{title} idles {bubble} of what 1F1B idles.", "span_idle (chunk ticks)",
               span_idle(name), "<=", part_of_1f1b(bubble), UNIT_LONG,
               slack="the order idles less", premises=[UP_TO, EVEN, TWICE_PIPE]),
    )  # fmt: skip


def _h_claims(
    name: str, title: str, ahead: int, filled: Domain, least: str
) -> tuple[PaperClaim, ...]:
    """W delayed by ``ahead`` microbatches per hop, so that as many W fill a hop's wait."""
    weights, most = ("tW", "p") if ahead == 1 else ("2tW", "2p-1")
    condition = f"m >= {most} and tW <= {least}"
    where = f"m >= {ahead}*(p-1) + 1 and tW <= {least}"
    bubble = f"(p-1)*(tF + tI - {ahead}*tW)"
    return (
        stated(f"field.{name}.bubble", ZERO_BUBBLE, f"{title} idles (p-1)(tF+tI-{weights}).",
               "span_idle (ticks)", span_idle(name), "==", bubble, _split(condition, where),
               premises=[Premise(text=condition, cases=where)]),
        stated(f"field.{name}.peak", ZERO_BUBBLE, f"{title} keeps {most} activations.",
               "peak activations (units)", peak(name), "==", f"{ahead}*(p-1) + 1", filled),
    )  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (
    *_h_claims("zb-h1", "ZB-H1", 1, UNIT_FILLED, "tF"),
    stated("field.zb-h1.third", "Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.2",
           "At tF = tI = tW ZB-H1 idles a third of what 1F1B idles.", "span_idle (ticks)",
           span_idle("zb-h1"), "==", part_of_1f1b("1/6"), UNIT_FILLED),
    *_h_claims("zb-h2", "ZB-H2", 2, UNIT_FULL, "min(tF, tI)"),
    stated("field.zb-v.bubble", ZB_V, "ZB-V idles nowhere.", "span_idle (chunk ticks)",
           span_idle("zb-v"), "==", 0, UNIT_FULL, premises=[EVEN, LONG_PIPE]),
    stated("field.zb-v.peak", ZB_V,
           "ZB-V keeps as many activations as 1F1B, those of p microbatches.",
           "peak over 1F1B's peak", peak_part("zb-v"), "==", 1, UNIT_FILLED),
    *_v_claims("v-half", "V-Half", "1/2", "1/p", "(p+2)//2 / p", "1/2"),
    *_v_claims("v-min", "V-Min", "1/3", "4/(3*p)", "(p+4)//3 / p", "2/3"),
)  # fmt: skip
