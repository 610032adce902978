"""Interleaved 1F1B with p | m and tB >= tF: the left-shifted starts in closed form.

Places, w = (v-1)p + 1, d = p-1-r, N = m*v and X = p*v*tF as in ``interleaved``; rank r warms up
with w + 2d forwards, F(w+2d+n) follows B(n), and c = N - w - 2d backwards have a forward behind
them (c < 0 says that the warm-up is cut short; it can be only where m = p). From the second group
of microbatches on, rank 0 waits for the last rank at every chunk but chunk 0, first at place
(v+1)p. What that wait costs rank r, it never makes up for before the forwards end:

    e = max(0, d tF - (r+1) tB)  for v >= 2, and 0 for v = 1

    F(x) = (r + x) tF                                      for x < w+2d
           X + n P + (d+1) tB  [+ e from n = 2r+1 on]      n = x - w - 2d
    B(n) = X + n P + d tB      [+ e from n = 2r+2 on]      for n < c
           X + (n+d) tB + max(n tF, c tF + e)              for c <= n < c+2d
           X + (n+d) tB + (c+2d) tF                        for n >= c+2d

Where tF > tB the first backward waits for the warm-up, not for the rank below, and the cool-down
depends on parities: these starts are then not the left-shifted ones (``interleaved`` still gives
makespan and peak).

The waits between chunks: F(x) of rank 0 waits for F(x-p) of rank p-1 unless x is a place of chunk
0. The obligations ask for it at every x but v*p..(v+1)p-1, places of chunk 0 of the second group,
so at more places than the family waits at. In tightness it is used at (v+1)p alone, the first place
of chunk 1 of the second group, where v >= 2: a wait there is.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.papers.field.interleaved_theorem import (
    AT_X,
    ORIGIN,
    SHAPE,
    InterleavedForm,
    N,
    Q,
    R,
    W,
    X,
    Y,
    costs,
    dependencies,
    order,
    warmup,
)
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, P
from bubbleproof.papers.theorems.list_places import SYMBOLS, Places, of_groups
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, any_of, choose
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of


def whole(group: Term) -> tuple[LogicFormula, ...]:
    """Groups of so many: N = m*v is Q + group or at least twice that, Q = (v-1) group."""
    return any_of(N.equals(Q + group), 2 * Q + 2 * group <= N), any_of(Q.equals(0), group <= Q)


WHOLE = whole(P)
ASSUMED = (*WHOLE, TB >= TF)


def lateness(rank: Term, group: Term = P) -> Term:
    """e in ticks: what the wait for the last rank costs; less where it is for more than p back."""
    late = (P - 1 - rank) * TF - (rank + 1) * TB - (group - P) * PAIR
    return choose(all_of(group <= Q, late > 0), late, 0 * TF)


def starts(late: Callable[[Term], Term] = lateness, onset: Term | int = 0) -> InterleavedForm:
    """The closed form in ticks; a twin changes the lateness, which larger groups meet ``onset``
    places later."""

    def backward(rank: Term, n: Term) -> Term:
        d, c = P - 1 - rank, N - warmup(rank)
        e, base = late(rank), ORIGIN + (n + d) * TB
        steady = base + n * TF + choose(n <= 2 * rank + 1 + onset, 0 * TF, e)
        closing = base + choose(n * TF >= c * TF + e, n * TF, c * TF + e)
        ending = choose(n <= c + 2 * d - 1, closing, base + (c + 2 * d) * TF)
        return choose(n <= c - 1, steady, ending)

    def forward(rank: Term, x: Term) -> Term:
        d = P - 1 - rank
        n = x - W - 2 * d
        steady = ORIGIN + n * PAIR + (d + 1) * TB
        then = choose(n <= 2 * rank + onset, steady, steady + late(rank))
        return choose(n <= -1, (rank + x) * TF, then)

    return InterleavedForm(forward=forward, backward=backward)


FORM = starts()


def tightness(
    form: InterleavedForm, group: Term = P, place: str = "(v+1)p"
) -> list[ObligationPart]:
    """Each start is 0, or the end of what precedes it on the rank or of what it waits for.

    ``place`` names Q + 2 group, where rank 0 first waits for the last.
    """
    f, b, zero = form.forward, form.backward, 0 * R
    first = form.warmup(R)
    before_f = choose(first - 1 >= X, f(R, X - 1) + TF, b(R, X - first) + TB)
    alone = f(R, N - 1) + TF  # what precedes B(0) where the warm-up is cut short
    after_b = choose(X <= 0, alone, b(R, X - 1) + TB)
    before_b = choose(first + X <= N, f(R, X + first - 1) + TF, after_b)
    return [
        ("F is tight", (*AT_X, X >= 1),
         any_of(f(R, X).equals(before_f), all_of(R >= 1, f(R, X).equals(f(R - 1, X) + TF)),
                all_of(group <= Q, R.equals(0), X.equals(Q + 2 * group)))),
        (f"F of rank 0 is tight at place {place}",
         (*AT_X, group <= Q, R.equals(0), X.equals(Q + 2 * group)),
         any_of(f(R, X).equals(before_f), f(R, X).equals(f(P - 1, X - group) + TF))),
        ("the first F is tight", (), any_of(R.equals(0), f(R, zero).equals(f(R - 1, zero) + TF))),
        ("B is tight", AT_X,
         any_of(b(R, X).equals(before_b), all_of(R <= P - 2, b(R, X).equals(b(R + 1, X) + TB)))),
    ]  # fmt: skip


def hints_of(*more: Term) -> tuple[tuple[Term, Term], ...]:
    """Signs of the products that the comparisons of two cases leave behind, and of more counts."""
    after, later = (place - W - 2 * (P - 1 - R) for place in (X, Y))  # n of F(X) and F(Y)
    left = N - warmup(R)  # c
    counts = (
        after,
        later,
        X,
        Y,
        Y - X,
        Y - after - 1,
        X - Q,
        left,
        left + 2,
        X - left,
        N - Q - P,
        *more,
    )
    return ((P - 1 - R, TB - TF), (R, TB - TF), *((e, t) for e in counts for t in (TF, TB)))


def theorem(
    form: InterleavedForm = FORM,
    assumed: tuple[LogicFormula, ...] = ASSUMED,
    places: Places | None = None,
) -> Theorem:
    """Interleaved 1F1B's closed form is its left-shifted schedule where tB >= tF."""
    elsewhere = (Q >= P, any_of(X <= Q + P - 1, X >= Q + 2 * P))  # not v*p..(v+1)p-1
    parts = (*dependencies(form, elsewhere), *order(form), *tightness(form), *costs(form))
    return Theorem(
        id="interleaved-starts",
        statement=(
            "Interleaved 1F1B with p | m and tB >= tF: with w = (v-1)p + 1, d = p-1-r, "
            "X = p*v*tF, c = m*v - w - 2d and e = max(0, d*tF - (r+1)tB) (0 for v = 1), rank r's "
            "left-shifted starts are F(x) = (r+x)tF for x < w+2d and F(w+2d+n) = X + n*P + (d+1)tB "
            "(+ e from n = 2r+1 on), B(n) = X + n*P + d*tB (+ e from n = 2r+2 on) for n < c and "
            "X + (n+d)tB + min(max(n*tF, c*tF + e), (c+2d)tF) after; makespan (m*v+p-1)P and peak "
            "min((v-1)p + 2(p-r-1) + 1, m*v) are theirs"
        ),
        assumptions=(
            "p, v >= 1, p divides m",
            "0 < tF <= tB, equal on all stages",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, v chunks per rank, r rank, x y n places in the rank's order, "
            "Q = (v-1)p, N = m*v, tF tB ticks of a chunk (real), P = tF + tB"
            f"{SYMBOLS}, the a-th of groups"
        ),
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths (induction)"
        ),
        obligations=(
            *obligations_of(parts, (*SHAPE, *assumed), hints_of()),
            *of_groups(places or Places(), is_timed=True),
        ),
    )
