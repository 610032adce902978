"""PipeMesh's left-shifted starts where all operations have q >= p microbatches and tB >= tF.

They are interleaved 1F1B's (``interleaved_starts``) with groups of q: w = (v-1)q + 1, d = p-1-r,
and what rank 0's first wait for the last rank costs rank r is

    e = max(0, d tF - (r+1) tB - (q-p) P)

from forward w + 2d + 2(q-p) + 2r + 1 on. With q = p that is interleaved 1F1B.
"""

from __future__ import annotations

from bubbleproof.papers.field.interleaved_starts import hints_of, lateness, starts, tightness, whole
from bubbleproof.papers.field.interleaved_theorem import (
    AT_X,
    SHAPE,
    InterleavedForm,
    N,
    Q,
    R,
    W,
    X,
    between_chunks,
    costs,
    on_last_stage,
    on_neighbours,
    order,
    warmup,
)
from bubbleproof.papers.theorems.closed_form import TB, TF, P
from bubbleproof.papers.theorems.list_places import SYMBOLS, Places, of_groups
from bubbleproof.papers.theorems.terms import LogicFormula, Term, any_of, index
from bubbleproof.papers.theorems.theorem import Theorem, obligations_of

GROUP = index("q")
LATER = 2 * (GROUP - P)  # places by which larger groups meet the wait later


def _late(rank: Term) -> Term:
    return lateness(rank, GROUP)


FORM = starts(_late, LATER)


def theorem(
    form: InterleavedForm = FORM, shortest: LogicFormula = P <= GROUP, places: Places | None = None
) -> Theorem:
    """PipeMesh's closed form is its left-shifted schedule where tB >= tF."""
    elsewhere = (Q >= GROUP, any_of(X <= Q + GROUP - 1, X >= Q + 2 * GROUP))
    left, after = N - warmup(R), X - W - 2 * (P - 1 - R)
    hints = hints_of(GROUP - P, LATER - after, after - 2 * R - LATER, N - Q - GROUP, LATER - left)
    parts = (
        *on_neighbours(form),
        *between_chunks(form, X - GROUP, (*AT_X, X >= GROUP), of_forwards=elsewhere),
        *on_last_stage(form, X + Q, (*AT_X, X + Q <= N - 1)),
        *order(form),
        *tightness(form, GROUP, "(v+1)q"),
        *costs(form),
    )
    return Theorem(
        id="pipemesh-starts",
        statement=(
            "PipeMesh with operations of q >= p microbatches, q | m and tF <= tB: with "
            "w = (v-1)q + 1, d = p-1-r, X = ((v-1)q + p)tF, c = m*v - w - 2d, D = 2(q-p) and "
            "e = max(0, d*tF - (r+1)tB - (q-p)P) (0 for v = 1), rank r's left-shifted starts are "
            "F(x) = (r+x)tF for x < w+2d and F(w+2d+n) = X + n*P + (d+1)tB (+ e from n = D+2r+1 "
            "on), B(n) = X + n*P + d*tB (+ e from n = D+2r+2 on) for n < c and X + (n+d)tB + "
            "min(max(n*tF, c*tF + e), (c+2d)tF) after; makespan (m*v+p-1)P and peak "
            "min((v-1)q + 2(p-r-1) + 1, m*v) are theirs"
        ),
        assumptions=(
            "p, v >= 1, q >= p, q divides m",
            "0 < tF <= tB, equal on all stages",
            "links take 0 ticks, no collectives",
        ),
        symbols=(
            "p ranks, m microbatches, v chunks per rank, r rank, x y n places in the rank's order, "
            "Q = (v-1)q, N = m*v, tF tB ticks of a chunk (real), P = tF + tB"
            f"{SYMBOLS}, the a-th of groups"
        ),
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths (induction)"
        ),
        obligations=(
            *obligations_of(parts, (*SHAPE, *whole(GROUP), TB >= TF, shortest), hints),
            *of_groups(places or Places(), GROUP, is_timed=True),
        ),
    )
