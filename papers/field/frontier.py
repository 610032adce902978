"""The time-memory frontier of full backwards: 1F1B with K activations per rank, for all K <= p.

Let rank 0 hold at most K activations. Theorem ``memory-bound`` (i = 0) says that the makespan is
at least (m + p - 1 + q(p-K))P for every q with qK < m. Here it is reached: with D = (p-K)P and
j = qK + s, 0 <= s < K,

    F(i,j) = (i + j) tF                 for q = 0 and j < p - i
             i tF + j P + q D           otherwise
    B(i,j) = p tF + (p-1-i) tB + j P + q D

keeps all waits, runs one task at a time, and holds at most min(K, p-i) activations on rank i. With
K = p this is 1F1B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, I, M, P
from bubbleproof.papers.theorems.parametric_bounds import memory_bound
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, any_of, choose, index
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

CAP = index("K")
SHAPE = (P >= 1, M >= 1, CAP >= 1, CAP <= P, TF > 0, TB > 0, I >= 0, I <= P - 1)


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
    """q (p-K) P: the ticks that the windows before cost more than in 1F1B."""
    return place.window * (P - CAP) * PAIR


def forward(i: Term, j: WindowPlace) -> Term:
    """Start of F(i, j) in ticks."""
    steady = i * TF + j.number * PAIR + delay(j)
    return choose(all_of(j.window <= 0, j.within <= P - i - 1), (i + j.within) * TF, steady)


def backward(i: Term, j: WindowPlace) -> Term:
    """Start of B(i, j) in ticks."""
    return P * TF + (P - 1 - i) * TB + j.number * PAIR + delay(j)


MOST = choose(CAP <= P - I, CAP, P - I)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierForm:
    """The starts, the activations per rank that they keep to, and the makespan.

    ``makespan(q)`` is in ticks, with q the window of microbatch m-1.
    """

    forward: WindowStartOf = forward
    backward: WindowStartOf = backward
    most: Term = MOST
    makespan: Callable[[Term], Term] = lambda q: (M + P - 1 + q * (P - CAP)) * PAIR


HINTS = (
    (L.window - J.window, CAP),
    (J.window - L.window, P - CAP),
    *(((J.window - L.window) * (P - CAP), t) for t in (TF, TB)),
)


def waits(form: FrontierForm) -> list[ObligationPart]:
    """Every dependency holds; one task at a time: F(j) and B(k) by the pairs of ticks before."""
    f, b = form.forward, form.backward
    both = (J.exists, L.exists)
    return [
        ("no start before 0", (J.exists,), all_of(f(I, J) >= 0, b(I, J) >= 0)),
        ("F after F of the rank before", (J.exists, I >= 1), f(I, J) >= f(I - 1, J) + TF),
        ("B after B of the next rank", (J.exists, I <= P - 2), b(I, J) >= b(I + 1, J) + TB),
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
        ("memory-bound speaks of the last window", last, L.window * CAP <= M - 1),
        ("memory-bound is this makespan", last,
         memory_bound(L.window, zero, CAP).equals(form.makespan(L.window))),
    ]  # fmt: skip


def theorem(form: FrontierForm | None = None) -> Theorem:
    """Least makespan under K activations per rank: (m + p - 1 + floor((m-1)/K) (p-K)) P."""
    form = form or FrontierForm()
    slots = J.number + J.window * (P - CAP) - L.number - L.window * (P - CAP) - P + 1 + I
    hints = (*HINTS, *((slots, t) for t in (TF, TB)))
    return Theorem(
        id="frontier",
        statement=(
            "With full backwards, one stage per rank and at most K <= p activations on every rank "
            "(or on rank 0 alone), the least makespan is exactly "
            "(m + p - 1 + floor((m-1)/K) (p-K)) P; rank i needs min(K, p-i) activations for it"
        ),
        assumptions=(
            "1 <= K <= p, m >= 1",
            "tF, tB > 0, equal on all ranks",
            "links take 0 ticks",
            "identical microbatches (verify.certificates.index_order)",
        ),
        symbols=(
            "p ranks, m microbatches, K activations, i rank, microbatches qK+s and q2 K+s2, "
            "tF tB ticks (real), P = tF + tB"
        ),
        argument=(
            "The closed form is a schedule of that makespan and memory; theorem memory-bound with "
            "i = 0 and q = floor((m-1)/K) says that none is faster"
        ),
        obligations=obligations_of((*waits(form), *costs(form)), SHAPE, hints),
    )
