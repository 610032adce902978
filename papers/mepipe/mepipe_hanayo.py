"""Hanayo's time at backwards that last longer or shorter than forwards, as a formula.

Symbols: p ranks, m microbatches (the paper's n), v chunks in wave placement, tF and tB the ticks of
one action, d = |tB - tF|. MEPipe's Table 3 holds at tF = tB. The closed form behind it lets
microbatch j start every two ticks, so that in a slot of two forwards and backwards of different
lengths meet; where a wave turns (v >= 2) each such meeting costs d:

    makespan = (nv + p-1)(tF + tB) + (2n/p - 1)(p-1) d     where p divides n
    makespan = (vp + n-1)(tF + tB) + (n-1) d               where n <= p

For one chunk d costs nothing. Measured is the closed form's order (``families.hanayo``), which the
family runs at these n.

Source: Sun et al., "MEPipe" (EuroSys 2025) Table 3; the formula is ours.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import Params, scope
from bubbleproof.papers.mepipe.mepipe_domains import V
from bubbleproof.papers.mepipe.mepipe_table3 import HANAYO_FEW, VPP_BUBBLE
from bubbleproof.theory.families.hanayo import closed_form_order
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

RANKS = ((2, 3, 4), (2, 3, 4, 5, 7, 11, 16))
DIVIDED = scope("p divides n", "m % p == 0", ranks=RANKS, v=V)
FEW = scope("n <= p", "m <= p", ranks=RANKS, v=V)


@lru_cache(maxsize=4096)  # numbers only
def _measured(p: int, m: int, v: int, forward: int, backward: int) -> Measures:
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        placement="wave",
        forward=forward,
        backward=backward,
    )
    problem = pipeline.problem()
    return measure(problem, left_shift(problem, closed_form_order(pipeline)))


def measured(at: Params) -> Measures:
    return _measured(at["p"], at["m"], at["v"], at["tF"], at["tB"])


def turns(at: Params) -> int:
    """How often the difference of tF and tB is waited for."""
    if at["v"] == 1:
        return 0
    if at["m"] <= at["p"]:
        return at["m"] - 1
    return (2 * at["m"] // at["p"] - 1) * (at["p"] - 1)


def makespan(at: Params) -> int:
    """The module's formula, for n <= p or p dividing n."""
    slots = at["v"] * at["p"] + at["m"] - 1
    if at["m"] > at["p"]:
        slots = at["m"] * at["v"] + at["p"] - 1
    waiting = turns(at) * abs(at["tB"] - at["tF"])
    return slots * (at["tF"] + at["tB"]) + waiting


def bubble(at: Params) -> Fraction:
    """1 - work/makespan."""
    return 1 - Fraction(at["m"] * at["v"] * (at["tF"] + at["tB"]), makespan(at))


CLAIMS: tuple[PaperClaim, ...] = (
    stated("mepipe.table3.hanayo.durations-divided", "ours, for MEPipe Table 3",
           "Where p divides n Hanayo takes (nv + p-1)(tF + tB) + (2n/p - 1)(p-1)|tB - tF| ticks, "
           "the last term for v >= 2.", "makespan (ticks)", lambda at: measured(at).makespan, "==",
           makespan, DIVIDED),
    stated("mepipe.table3.hanayo.durations-few", "ours, for MEPipe Table 3",
           "With n <= p Hanayo takes (vp + n-1)(tF + tB) + (n-1)|tB - tF| ticks, the last term for "
           "v >= 2.", "makespan (ticks)", lambda at: measured(at).makespan, "==", makespan, FEW),
    stated("mepipe.table3.hanayo.durations-bubble", "ours, for MEPipe Table 3",
           "Hanayo's bubble ratio where p divides n is 1 - nv(tF + tB) over that time.",
           "idle_ratio", lambda at: measured(at).idle_ratio, "==", bubble, DIVIDED),
    stated("mepipe.table3.hanayo.durations-least", "Table 3",
           "At no durations Hanayo idles less than the table says, (p-1)/(p-1+nv) where p divides "
           "n.", "idle_ratio", lambda at: measured(at).idle_ratio, ">=", VPP_BUBBLE, DIVIDED),
    stated("mepipe.table3.hanayo.durations-least-few", "Table 3",
           "Nor with n <= p, (vp+n-1-nv)/(vp+n-1).", "idle_ratio",
           lambda at: measured(at).idle_ratio, ">=", HANAYO_FEW, FEW),
)  # fmt: skip
