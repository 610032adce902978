"""ZB-H2 with tF = tI = tW = t and m >= 2p-1: the schedule in closed form, for all p, m and t.

Rank i of p, microbatch j of m, d = p-1-i, in units of t:

    F(i,j) = i + j                    for j <= 2d
             2p - 4d - 2 - i + 2j     for 2d < j < 2p - 1
             4 - 4p + 3i + 3j         for j >= 2p - 1
    I(i,j) = 2p - 1 - i + 2j          for j < 2i
             2p - 1 - 3i + 3j         for 2i <= j <= c,           c = m - 1 - 2d
             2p - 1 - 3i + 2j + c     for j > c
    W(i,j) = I(i, j+2i) + 1           for j + 2i < m
             2m + i + j               otherwise

Rank i runs 2d + 1 forwards first; then each I(j) is followed by W(j-2i) and F(j+2d+1). From tick i
to tick i + 3m it never waits.
"""

from __future__ import annotations

from bubbleproof.papers.field.split_form import SplitForm, dependencies, order, tightness
from bubbleproof.papers.theorems.closed_form import AT_J, I, J, M, P, live
from bubbleproof.papers.theorems.terms import Term, all_of, choose, index, time
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

T = time("t")
SHAPE = (P >= 1, M >= 2 * P - 1, T > 0)


def forward(i: Term, j: Term) -> Term:
    """Start of F(i, j) in ticks."""
    d = P - 1 - i
    late = choose(
        j <= 2 * P - 2, (2 * P - 4 * d - 2 - i + 2 * j) * T, (4 - 4 * P + 3 * i + 3 * j) * T
    )
    return choose(j <= 2 * d, (i + j) * T, late)


def input_backward(i: Term, j: Term) -> Term:
    """Start of I(i, j) in ticks."""
    last = M - 1 - 2 * (P - 1 - i)
    steady = 2 * P - 1 - 3 * i
    late = choose(j <= last, (steady + 3 * j) * T, (steady + 2 * j + last) * T)
    return choose(j <= 2 * i - 1, (2 * P - 1 - i + 2 * j) * T, late)


def weight_backward(i: Term, j: Term) -> Term:
    """Start of W(i, j) in ticks."""
    return choose(j + 2 * i <= M - 1, input_backward(i, j + 2 * i) + T, (2 * M + i + j) * T)


FORM = SplitForm(
    forward=forward,
    input_backward=input_backward,
    weight_backward=weight_backward,
    ticks=(T, T, T),
    makespan=(3 * M + P - 1) * T,
    peak=2 * P - 1,
    warmup=lambda i: 2 * (P - i) - 1,
    delay=lambda i: 2 * i,
)


def no_waits(form: SplitForm) -> list[ObligationPart]:
    """All 3m tasks of rank i lie in the 3m units from tick i on."""
    begin, end = I * T, (I + 3 * M - 1) * T
    starts = (form.forward(I, J), form.input_backward(I, J), form.weight_backward(I, J))
    inside = all_of(*(all_of(start >= begin, start <= end) for start in starts))
    return [("rank i works from tick i on and is done at i + 3m", AT_J, inside)]


def costs(form: SplitForm) -> list[ObligationPart]:
    """Activations live from the start of F to the end of W; the makespan is kept and reached."""
    f, w, zero = form.forward, form.weight_backward, 0 * I
    reached = all_of(f(zero, zero).equals(0), (w(I, M - 1) + T).equals(form.makespan))
    return [
        *live(f, lambda i, j: w(i, j) + T, form.peak, 2 * P - 2),
        ("no task ends after the makespan", AT_J, w(I, J) + T <= form.makespan),
        ("the makespan is reached", (I.equals(P - 1),), reached),
    ]


def lower_bound(form: SplitForm) -> list[ObligationPart]:
    """Any schedule: the last rank starts at (p-1)t or later and has 3m tasks to do."""
    here, after, done = time("any_here"), time("any_next"), index("a")
    return [
        ("head: a rank later is t later", (I >= 0, here >= I * T, after >= here + T),
         after >= (I + 1) * T),
        ("busy: one more task is t later", (done >= 0, here >= (P - 1 + done) * T, after >= here),
         after + T >= (P + done) * T),
        ("no schedule ends earlier", (here >= (P - 1 + 3 * M) * T,), here >= form.makespan),
    ]  # fmt: skip


def theorem(form: SplitForm = FORM) -> Theorem:
    """ZB-H2's left-shifted schedule; peak 2p-1, no waits, makespan (3m+p-1)t."""
    parts = (
        *dependencies(form),
        *order(form),
        *tightness(form),
        *no_waits(form),
        *costs(form),
        *lower_bound(form),
    )
    return Theorem(
        id="zb-h2",
        statement=(
            "ZB-H2 with tF = tI = tW = t and m >= 2p-1: the left-shifted starts of F, I and W in "
            "closed form; no rank waits between its first forward and its last W, which ends at "
            "(i+3m)t; every rank's peak is 2p-1 activations held until W ends; the makespan is "
            "(3m+p-1)t, and no schedule with split backwards is faster, however much memory it has"
        ),
        assumptions=("p >= 1, m >= 2p-1", "tF = tI = tW = t > 0, any real", "links take 0 ticks"),
        symbols="p ranks, m microbatches, i rank, j k microbatches, t ticks (real)",
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths "
            "(induction); 3m tasks of t ticks, one at a time within 3m t ticks, leave no gap; the "
            "bound is head plus busy time of the last rank (induction)"
        ),
        obligations=obligations_of(parts, SHAPE),
    )
