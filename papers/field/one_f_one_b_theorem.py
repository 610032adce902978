"""1F1B for all p, m and all durations tF, tB: the schedule in closed form.

With P = tF + tB, rank i of p, microbatch j of m:

    F(i,j) = (i + j) tF             for j < p - i      (warm-up)
             i tF + j P             otherwise
    B(i,j) = p tF + (p-1-i) tB + j P

Rank i warms up with p - i forwards; where m < p - i it runs all m of them first.
"""

from __future__ import annotations

from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, ClosedForm, M, P, obligations
from bubbleproof.papers.theorems.terms import Term, choose
from bubbleproof.papers.theorems.theorem import Theorem


def forward(i: Term, j: Term) -> Term:
    """Start of F(i, j) in ticks."""
    return choose(j <= P - i - 1, (i + j) * TF, i * TF + j * PAIR)


def backward(i: Term, j: Term) -> Term:
    """Start of B(i, j) in ticks."""
    return P * TF + (P - 1 - i) * TB + j * PAIR


def peak(i: Term) -> Term:
    """min(p - i, m) activations on rank i."""
    return choose(P - i <= M, P - i, M)


FORM = ClosedForm(
    forward=forward,
    backward=backward,
    warmup=lambda i: P - i,
    peak=peak,
    peak_at=lambda i: peak(i) - 1,
    makespan=(M + P - 1) * PAIR,
)


def theorem(form: ClosedForm = FORM) -> Theorem:
    """1F1B's closed form is its left-shifted schedule; peak min(p-i, m), makespan (m+p-1)P."""
    return Theorem(
        id="1f1b",
        statement=(
            "1F1B's left-shifted schedule starts F(i,j) at (i+j)tF for j < p-i and at i*tF + j*P "
            "after, B(i,j) at p*tF + (p-1-i)tB + j*P; rank i's peak is min(p-i, m) activations; "
            "the makespan is (m+p-1)P"
        ),
        assumptions=("p >= 1, m >= 1", "tF, tB > 0, equal on all ranks", "links take 0 ticks"),
        symbols="p ranks, m microbatches, i rank, j microbatch, tF tB ticks (real), P = tF + tB",
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths, by "
            "induction along the edges"
        ),
        obligations=obligations(form),
    )
