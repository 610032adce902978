"""ZB-H1 for all durations tF, tI, tW and m >= p: its left-shifted starts, and its makespan.

    m (tF + tI + tW) + (p-1) (tF + max(0, tI - min(tF, tW)))

At most: the starts below keep the family's order and waits, are tight (every start is 0, or the end
of an input, or the end of the task before it on the rank), and end by then. With Q = tF + tI + tW,
u = min(tF, tW) and c = m - p + i, on rank i

    I(i,j) = p tF + (p-1-i) tI + j (tF + tI)                      for j < i
             p tF + (p-1-i) tI + i (tF + tI) + (j-i) Q            for i <= j <= c
             the same - (j-c) u                                   for j > c
    W(i,j) = I(i,j+i) + tI for j + i < m, then without a gap
    F(i,j) = (i+j) tF for j < p - i; after that right behind the W, or the I, before it in the order

At least: three chains of work that the order does not let overlap.

- *head*: (p-1) tF until the last rank begins, and m Q of work on it;
- *last rank, then up*: the last rank begins at (p-1) tF and ends its last I after m F, m I and
  m - p W; that I goes up p-1 ranks, and rank 0 still has a W to do;
- *up, then rank 0*: the first I goes up p-1 ranks to rank 0, which then has m - p F, m I and m W
  to do.

So ZB-H1 is as fast as any schedule exactly where tI <= min(tF, tW). The zero-bubble paper's bubble
(p-1)(tF + tI - tW) is the second chain; it is no makespan's bubble where tF < tW or tI < tW.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.papers.field.split_form import SplitForm, dependencies, order, tightness
from bubbleproof.papers.theorems.closed_form import AT_J, I, J, K, M, P
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

# With u = min(tF, tW), tF = u + x and tW = u + y: so every product is with something above 0.
U, X, Y, TI = time("u"), time("x"), time("y"), time("tI")
TF, TW = U + X, U + Y
ROUND = TF + TI + TW
WAIT = time("wait")  # max(0, tI - u)
SHAPE = (
    P >= 1,
    M >= P,
    U > 0,
    TI > 0,
    X >= 0,
    Y >= 0,
    any_of(X.equals(0), Y.equals(0)),
    WAIT >= 0,
    WAIT >= TI - U,
    any_of(WAIT.equals(0), WAIT.equals(TI - U)),
)
HINTS = (
    (P - 1 - I, WAIT - TI + U),
    (I, WAIT),
    *((e, t) for e in (I, P - 1 - I) for t in (U, X, Y, TI)),
    *((P - 1, nothing) for nothing in (-1 * WAIT, TI - U - WAIT, -1 * X, -1 * Y)),
)


def input_backward(i: Term, j: Term) -> Term:
    """Start of I(i, j) in ticks."""
    first = P * TF + (P - 1 - i) * TI
    steady = first + i * (TF + TI) + (j - i) * ROUND
    c = M - P + i
    late = choose(j <= c, steady, steady - (j - c) * U)
    return choose(j <= i - 1, first + j * (TF + TI), late)


def weight_backward(i: Term, j: Term) -> Term:
    """Start of W(i, j) in ticks."""
    after_last = input_backward(i, M - 1) + TI + (j + i - M + 1) * TW
    return choose(j + i <= M - 1, input_backward(i, j + i) + TI, after_last)


def forward(i: Term, j: Term) -> Term:
    """Start of F(i, j) in ticks."""
    before = j - P + i
    after_i = input_backward(i, before) + TI
    late = choose(before <= i - 1, after_i, after_i + TW)
    return choose(j <= P - i - 1, (i + j) * TF, late)


FORM = SplitForm(
    forward=forward,
    input_backward=input_backward,
    weight_backward=weight_backward,
    ticks=(TF, TI, TW),
    makespan=M * ROUND + (P - 1) * (TF + WAIT),
)


@dataclass(frozen=True, slots=True)
class _Work:
    """So many F, I and W, as indices."""

    forwards: Term
    inputs: Term
    weights: Term

    @property
    def ticks(self) -> Term:
        return self.forwards * TF + self.inputs * TI + self.weights * TW


def costs(form: SplitForm) -> list[ObligationPart]:
    """The end, and the peak that the order alone fixes: F(j) follows W(j-p), not W(j-p+1)."""
    end = form.weight_backward(I, M - 1) + TW  # the rank's last in the order
    return [
        ("no rank ends after the makespan", (I >= 0, I <= P - 1), end <= form.makespan),
        ("the first task starts at 0", (), form.forward(0 * I, 0 * I).equals(0)),
        ("F(j) follows W(j-p): never more than the peak", (*AT_J, form.peak <= J),
         form.forward(I, J) >= form.weight_backward(I, J - form.peak) + TW),
        ("F(p-1) precedes every W: the peak is reached", (I >= 0, I <= P - 1, K >= 0, K <= M - 1),
         form.weight_backward(I, K) >= form.forward(I, form.peak - 1) + TF),
    ]  # fmt: skip


def busy() -> list[ObligationPart]:
    """After some F, I and W since ``any_head``, their ticks have passed."""
    head, here, begin = (time(f"any_{name}") for name in ("head", "here", "next"))
    done = _Work(*(index(name) for name in ("a", "b", "c")))
    counts = (done.forwards >= 0, done.inputs >= 0, done.weights >= 0)
    premises = (*counts, here >= head + done.ticks, begin >= here)
    more = {
        "F": (TF, _Work(done.forwards + 1, done.inputs, done.weights)),
        "I": (TI, _Work(done.forwards, done.inputs + 1, done.weights)),
        "W": (TW, _Work(done.forwards, done.inputs, done.weights + 1)),
    }
    return [
        (f"busy: one {name} more", premises, begin + ticks >= head + then.ticks)
        for name, (ticks, then) in more.items()
    ]


def chains(form: SplitForm) -> list[ObligationPart]:
    """The three chains; each premise is what the inductions above and below give."""
    here, after, end = (time(f"any_{name}") for name in ("here", "next", "end"))
    rank = I >= 0
    whole = _Work(M, M, M).ticks
    first: LogicFormula = end >= (P - 1) * TF + whole
    second = end >= (P - 1) * TF + _Work(M, M, M - P).ticks + (P - 1) * TI + TW
    third = end >= P * TF + (P - 1) * TI + _Work(M - P, M, M).ticks
    return [
        *busy(),
        ("F goes down: a rank later is tF later", (rank, here >= I * TF, after >= here + TF),
         after >= (I + 1) * TF),
        ("I goes up: i ranks take i * tI", (rank, after >= here + I * TI, end >= after + TI),
         end >= here + (I + 1) * TI),
        ("exactly m - p W precede the last I of the last rank", (K >= 0, K <= M - 1),
         any_of(all_of(M - 1 > P - 1 + K, K <= M - P - 1), all_of(M - 1 <= P - 1 + K, K >= M - P))),
        ("no timing of this order ends earlier", (first, second, third), end >= form.makespan),
        ("no schedule at all is faster where tI <= min(tF, tW)", (first, TI <= U),
         end >= form.makespan),
    ]  # fmt: skip


def theorem(form: SplitForm = FORM) -> Theorem:
    """ZB-H1's left-shifted schedule and makespan, and where it is the least of any schedule."""
    parts = (*dependencies(form), *order(form), *tightness(form), *costs(form), *chains(form))
    return Theorem(
        id="zb-h1",
        statement=(
            "ZB-H1 with m >= p has makespan m(tF+tI+tW) + (p-1)(tF + max(0, tI - min(tF, tW))) "
            "and peak p on every rank; where tI <= min(tF, tW) no schedule is faster. With u = "
            "min(tF, tW), Q = tF + tI + tW and c = m-p+i rank i's left-shifted starts are I(j) = "
            "p*tF + (p-1-i)tI + min(j,i)(tF+tI) + max(0,j-i)Q - max(0,j-c)u, W(j) = I(j+i) + tI "
            "for j+i < m and without a gap after, F(j) = (i+j)tF for j < p-i and right behind "
            "I(j-p+i), or its W where j >= p, after"
        ),
        assumptions=("p >= 1, m >= p", "tF, tI, tW > 0, any reals", "links take 0 ticks"),
        symbols=(
            "p ranks, m microbatches, i rank, j k microbatches, tF tI tW ticks (real), "
            "u = min(tF, tW), x = tF - u, y = tW - u, wait = max(0, tI - u)"
        ),
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths "
            "(induction); three chains of work in this order take as long (inductions)"
        ),
        obligations=obligations_of(parts, SHAPE, HINTS),
    )
