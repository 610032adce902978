"""ZB-H1's left-shifted starts for all p, m >= p and all durations tF, tI, tW.

They are the starts of ``zb_h1_durations``, which end in time whatever is left-shifted. Here nothing
in them waits longer than it must: every start is 0, or the end of an input, or the end of the task
before it on the rank.
"""

from __future__ import annotations

from bubbleproof.papers.field.zb_h1 import SplitForm, dependencies, order, tightness
from bubbleproof.papers.field.zb_h1_durations import FORM, HINTS, SHAPE, costs
from bubbleproof.papers.theorems.theorem import Theorem, obligations_of


def theorem(form: SplitForm = FORM) -> Theorem:
    """ZB-H1's closed form is its left-shifted schedule."""
    parts = (*dependencies(form), *order(form), *tightness(form), *costs(form))
    return Theorem(
        id="zb-h1-starts",
        statement=(
            "ZB-H1 with m >= p, with u = min(tF, tW), Q = tF + tI + tW and c = m-p+i: rank i's "
            "left-shifted starts are I(j) = p*tF + (p-1-i)tI + min(j,i)(tF+tI) + max(0,j-i)Q - "
            "max(0,j-c)u, W(j) = I(j+i) + tI for j+i < m and without a gap after, F(j) = (i+j)tF "
            "for j < p-i and right behind I(j-p+i), or its W where j >= p, after; the peak is p "
            "on every rank"
        ),
        assumptions=("p >= 1, m >= p", "tF, tI, tW > 0, any reals", "links take 0 ticks"),
        symbols=(
            "p ranks, m microbatches, i rank, j k microbatches, tF tI tW ticks (real), "
            "u = min(tF, tW), x = tF - u, y = tW - u, wait = max(0, tI - u)"
        ),
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths (induction)"
        ),
        obligations=obligations_of(parts, SHAPE, HINTS),
    )
