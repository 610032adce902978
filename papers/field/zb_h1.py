"""ZB-H1 with tF = tI = tW = t and m >= p: the schedule in closed form, for all p, m and t.

Rank i of p, microbatch j of m, in units of t:

    F(i,j) = i + j                    for j < p - i
             i + 2j                   for p - i <= j < p
             i + 1 - p + 3j           for j >= p
    I(i,j) = 2p - 1 - i + 2j          for j < i
             2p - 1 - 2i + 3j         for i <= j <= m - p + i
             m + p - 1 - i + 2j       for j > m - p + i
    W(i,j) = 2p + i + 3j              for j <= m - p
             m + p + i + 2j           for m - p < j < m - i
             2m + p - 1 + j           for j >= m - i

Rank i runs p - i forwards first; then each I(j) is followed by W(j-i) and F(j+p-i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, AT_K, I, J, K, M, P, live
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    index,
    negate,
    time,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

T = time("t")
SHAPE = (P >= 1, M >= P, T > 0)
SplitStartOf = Callable[[Term, Term], Term]


def forward(i: Term, j: Term) -> Term:
    """Start of F(i, j) in ticks."""
    late = choose(j <= P - 1, (i + 2 * j) * T, (i + 1 - P + 3 * j) * T)
    return choose(j <= P - i - 1, (i + j) * T, late)


def input_backward(i: Term, j: Term) -> Term:
    """Start of I(i, j) in ticks."""
    late = choose(j <= M - P + i, (2 * P - 1 - 2 * i + 3 * j) * T, (M + P - 1 - i + 2 * j) * T)
    return choose(j <= i - 1, (2 * P - 1 - i + 2 * j) * T, late)


def weight_backward(i: Term, j: Term) -> Term:
    """Start of W(i, j) in ticks."""
    late = choose(j <= M - i - 1, (M + P + i + 2 * j) * T, (2 * M + P - 1 + j) * T)
    return choose(j <= M - P, (2 * P + i + 3 * j) * T, late)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitForm:
    """The starts of F, I and W, their durations, the peak on every rank, and the makespan.

    Rank i begins with ``warmup(i)`` forwards; W(j) comes ``delay(i)`` microbatches after I(j). The
    peak is reached at forward ``peak_at``.
    """

    forward: SplitStartOf = forward
    input_backward: SplitStartOf = input_backward
    weight_backward: SplitStartOf = weight_backward
    ticks: tuple[Term, Term, Term] = (T, T, T)
    peak: Term = P
    peak_at: Term = P - 1
    makespan: Term = (3 * M + P - 1) * T
    warmup: Callable[[Term], Term] = lambda i: P - i
    delay: Callable[[Term], Term] = lambda i: i


def dependencies(form: SplitForm) -> list[ObligationPart]:
    """F waits for the rank before, I for the rank after and its own F, W for its own I."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, _ = form.ticks
    starts = all_of(f(I, J) >= 0, b(I, J) >= 0, w(I, J) >= 0)
    return [
        ("no start before 0", AT_J, starts),
        ("F after F of the rank before", (*AT_J, I >= 1), f(I, J) >= f(I - 1, J) + t_f),
        ("I after I of the next rank", (*AT_J, I <= P - 2), b(I, J) >= b(I + 1, J) + t_i),
        ("I after its own F", AT_J, b(I, J) >= f(I, J) + t_f),
        ("W after its own I", AT_J, w(I, J) >= b(I, J) + t_i),
    ]


def order(form: SplitForm) -> list[ObligationPart]:
    """One task at a time: the warm-up, then I(j), W(j-delay), F(j+warmup) for each j."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, t_w = form.ticks
    later, at = (*AT_J, *AT_K, K >= J + 1), (*AT_J, *AT_K)
    warmup, delay = form.warmup(I), form.delay(I)
    f_before_i, i_before_w = warmup + K - 1 >= J, delay + K >= J
    f_before_w = warmup + delay + K - 1 >= J
    return [
        ("F in index order", later, f(I, K) >= f(I, J) + t_f),
        ("I in index order", later, b(I, K) >= b(I, J) + t_i),
        ("W in index order", later, w(I, K) >= w(I, J) + t_w),
        ("F before I in the order", (*at, f_before_i), b(I, K) >= f(I, J) + t_f),
        ("F after I in the order", (*at, negate(f_before_i)), f(I, J) >= b(I, K) + t_i),
        ("F before W in the order", (*at, f_before_w), w(I, K) >= f(I, J) + t_f),
        ("F after W in the order", (*at, negate(f_before_w)), f(I, J) >= w(I, K) + t_w),
        ("I before W in the order", (*at, i_before_w), w(I, K) >= b(I, J) + t_i),
        ("I after W in the order", (*at, negate(i_before_w)), b(I, J) >= w(I, K) + t_w),
    ]


def tightness(form: SplitForm) -> list[ObligationPart]:
    """Each start is 0 or the end of a task that must come before it."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, t_w = form.ticks
    warmup, delay = form.warmup(I), form.delay(I)
    both = warmup + delay
    return [
        (
            "F is tight",
            AT_J,
            any_of(
                f(I, J).equals(0),
                all_of(I >= 1, f(I, J).equals(f(I - 1, J) + t_f)),
                all_of(J >= 1, f(I, J).equals(f(I, J - 1) + t_f)),
                all_of(warmup <= J, f(I, J).equals(b(I, J - warmup) + t_i)),
                all_of(both <= J, f(I, J).equals(w(I, J - both) + t_w)),
            ),
        ),
        (
            "I is tight",
            AT_J,
            any_of(
                b(I, J).equals(f(I, J) + t_f),
                all_of(I <= P - 2, b(I, J).equals(b(I + 1, J) + t_i)),
                all_of(J >= 1, b(I, J).equals(b(I, J - 1) + t_i)),
                all_of(J + warmup <= M, b(I, J).equals(f(I, J + warmup - 1) + t_f)),
                all_of(delay + 1 <= J, b(I, J).equals(w(I, J - delay - 1) + t_w)),
            ),
        ),
        (
            "W is tight",
            AT_J,
            any_of(
                w(I, J).equals(b(I, J) + t_i),
                all_of(J >= 1, w(I, J).equals(w(I, J - 1) + t_w)),
                all_of(J + delay <= M - 1, w(I, J).equals(b(I, J + delay) + t_i)),
                all_of(J + both <= M, w(I, J).equals(f(I, J + both - 1) + t_f)),
            ),
        ),
    ]


def costs(form: SplitForm, last: LogicFormula | None = None) -> list[ObligationPart]:
    """Activations live from the start of F to the end of W; the makespan is kept and reached.

    ``last`` says which ranks end last; None for every rank.
    """
    f, w, zero = form.forward, form.weight_backward, 0 * I
    return [
        *live(f, lambda i, j: w(i, j) + T, form.peak, form.peak_at),
        ("no task ends after the makespan", AT_J, w(I, J) + T <= form.makespan),
        (
            "the makespan is reached",
            (I >= 0, I <= P - 1) if last is None else (last,),
            all_of(f(zero, zero).equals(0), (w(I, M - 1) + T).equals(form.makespan)),
        ),
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


def theorem(form: SplitForm | None = None) -> Theorem:
    """ZB-H1's left-shifted schedule; peak p, makespan (3m+p-1)t, the least of any schedule."""
    form = form or SplitForm()
    parts = (*dependencies(form), *order(form), *tightness(form), *costs(form), *lower_bound(form))
    return Theorem(
        id="zb-h1",
        statement=(
            "ZB-H1 with tF = tI = tW = t and m >= p: the left-shifted starts of F, I and W in "
            "closed form; every rank's peak is p activations held until W ends; the makespan is "
            "(3m+p-1)t, and no schedule with split backwards is faster, however much memory it has"
        ),
        assumptions=("p >= 1, m >= p", "tF = tI = tW = t > 0, any real", "links take 0 ticks"),
        symbols="p ranks, m microbatches, i rank, j k microbatches, t ticks (real)",
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths "
            "(induction); the bound is head plus busy time of the last rank (induction)"
        ),
        obligations=obligations_of(parts, SHAPE),
    )
