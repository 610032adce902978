"""The time-memory frontier of full backwards: 1F1B with K activations per rank.

Let a link take u ticks to the next rank and w back, together cP with P = tF + tB, c whole, and let
rank 0 hold at most K <= R activations, R = p + (p-1)c. Theorem ``stages-bound`` (c = 0, r = p-1)
says that the makespan is at least (m + R - 1 + q(R-K))P for every q with qK < m. Here it is
reached: with D = (R-K)P and j = qK + s, 0 <= s < K,

    F(i,j) = i (tF+u) + s tF            for q = 0 and s < p - i
             i (tF+u) + j P + q D       otherwise
    B(i,j) = p tF + (p-1) u + (p-1-i) (tB+w) + j P + q D

keeps all waits, runs one task at a time, and holds at most min(K, p-i + (p-1-i)c) activations on
rank i. With K = p and c = 0 this is 1F1B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, I, M, P
from bubbleproof.papers.theorems.parametric_bounds import memory_bound
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    index,
    time,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

CAP, C, U = index("K"), index("c"), time("u")
LINKS = C * PAIR
W = LINKS - U


def trip(i: Term) -> Term:
    """p-i + (p-1-i)c: from rank i to the last and back, in pairs."""
    return P - i + (P - 1 - i) * C


ROUND = trip(0 * I)
SHAPE = (P >= 1, M >= 1, CAP >= 1, CAP <= ROUND, TF > 0, TB > 0, I >= 0, I <= P - 1,
         C >= 0, U >= 0, U <= LINKS)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """Microbatch j = window * K + within."""

    window: Term
    within: Term

    @property
    def number(self) -> Term:
        return self.window * CAP + self.within

    @property
    def exists(self) -> LogicFormula:
        """The microbatch is one of 0..m-1."""
        return all_of(
            self.window >= 0, self.within >= 0, self.within <= CAP - 1, self.number <= M - 1
        )


J = WindowPlace(index("q"), index("s"))
L = WindowPlace(index("q2"), index("s2"))
LATER = any_of(
    L.window >= J.window + 1, all_of(L.window.equals(J.window), L.within >= J.within + 1)
)
WindowStartOf = Callable[[Term, WindowPlace], Term]


def delay(place: WindowPlace) -> Term:
    """q (R-K) P: the ticks that the windows before cost more than without a cap."""
    return place.window * (ROUND - CAP) * PAIR


def forward(i: Term, j: WindowPlace) -> Term:
    """Start of F(i, j) in ticks."""
    at = i * (TF + U)
    steady = at + j.number * PAIR + delay(j)
    return choose(all_of(j.window <= 0, j.within <= P - i - 1), at + j.within * TF, steady)


def backward(i: Term, j: WindowPlace) -> Term:
    """Start of B(i, j) in ticks."""
    return P * TF + (P - 1) * U + (P - 1 - i) * (TB + W) + j.number * PAIR + delay(j)


MOST = choose(trip(I) >= CAP, CAP, trip(I))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierForm:
    """The starts, the activations per rank that they keep to, and the makespan.

    ``makespan(q)`` is in ticks, with q the window of microbatch m-1.
    """

    forward: WindowStartOf = forward
    backward: WindowStartOf = backward
    most: Term = MOST
    makespan: Callable[[Term], Term] = lambda q: (M + ROUND - 1 + q * (ROUND - CAP)) * PAIR


LONGER = (L.window - J.window) * (ROUND - CAP)  # what later windows wait, in pairs
HINTS = (
    (I, W),
    (I, TB),
    (L.window - J.window, CAP),
    (J.window - L.window, CAP),
    (L.window - J.window, ROUND - CAP),
    (J.window - L.window, ROUND - CAP),
    *((factor, t) for factor in (LONGER, -1 * LONGER, M - 1 - J.number) for t in (TF, TB)),
)


def waits(form: FrontierForm) -> list[ObligationPart]:
    """Every dependency holds; one task at a time: F(j) and B(k) by the pairs of ticks before."""
    f, b = form.forward, form.backward
    both = (J.exists, L.exists)
    return [
        ("no start before 0", (J.exists,), all_of(f(I, J) >= 0, b(I, J) >= 0)),
        ("F after F of the rank before", (J.exists, I >= 1), f(I, J) >= f(I - 1, J) + TF + U),
        ("B after B of the next rank", (J.exists, I <= P - 2), b(I, J) >= b(I + 1, J) + TB + W),
        ("B after its own F", (J.exists,), b(I, J) >= f(I, J) + TF),
        ("F in index order", (*both, LATER), f(I, L) >= f(I, J) + TF),
        ("B in index order", (*both, LATER), b(I, L) >= b(I, J) + TB),
        ("F and B one at a time", both, any_of(b(I, L) >= f(I, J) + TF, f(I, J) >= b(I, L) + TB)),
    ]


def costs(form: FrontierForm) -> list[ObligationPart]:
    """F(j) waits until backward j - most has ended; L is that microbatch, or microbatch m-1."""
    f, b, zero = form.forward, form.backward, 0 * I
    last = (L.exists, L.number.equals(M - 1))
    return [
        ("no more activations than stated: F(j) starts after backward j - most ends",
         (J.exists, L.exists, L.number.equals(J.number - form.most)), f(I, J) >= b(I, L) + TB),
        ("no task ends after the makespan", (J.exists, *last),
         b(I, J) + TB <= form.makespan(L.window)),
        ("the makespan is reached", last, (b(zero, L) + TB).equals(form.makespan(L.window))),
        ("the bound speaks of the last window", last, L.window * CAP <= M - 1),
        ("the bound is this makespan", last,
         memory_bound(L.window, zero, CAP, LINKS).equals(form.makespan(L.window))),
    ]  # fmt: skip


def theorem(form: FrontierForm | None = None) -> Theorem:
    """Least makespan under K activations per rank: (m + R - 1 + floor((m-1)/K) (R-K)) P."""
    form = form or FrontierForm()
    at = [j.number + j.window * (ROUND - CAP) for j in (J, L)]
    slots = at[0] - at[1] - trip(I) + 1
    hints = (*HINTS, *((slots, t) for t in (TF, TB)))
    return Theorem(
        id="frontier",
        statement=(
            "With full backwards, one stage per rank and links that take cP ticks there and back, "
            "the least makespan with at most K <= R activations on every rank (or on rank 0 alone) "
            "is exactly (m + R - 1 + floor((m-1)/K) (R-K)) P, R = p + (p-1)c; rank i needs "
            "min(K, p-i + (p-1-i)c) activations for it"
        ),
        assumptions=(
            "1 <= K <= R, m >= 1",
            "tF, tB > 0, equal on all ranks",
            "a link takes u ticks to the next rank and w back, none below 0, u + w = cP, c whole",
            "identical microbatches (verify.certificates.index_order)",
        ),
        symbols=(
            "p ranks, m microbatches, K activations, i rank, microbatches qK+s and q2 K+s2, "
            "tF tB u w ticks (real), P = tF + tB"
        ),
        argument=(
            "The closed form is a schedule of that makespan and memory; theorem stages-bound with "
            "c = 0, r = p-1 and q = floor((m-1)/K) says that none is faster. In any order, for any "
            "K and with links that take time: Coq, frontier of proofs/Frontier.v"
        ),
        obligations=obligations_of((*waits(form), *costs(form)), SHAPE, hints),
    )
