"""Closed forms: a schedule as start times by rank and place, and what makes it a theorem.

A family with full backwards and one stage per rank is a function from (rank i, microbatch j) to the
start of F and of B. ``obligations`` says all that makes this *the* schedule of the family:

- every dependency holds, every start is 0 or later;
- on a rank, forwards and backwards run in index order, forwards and backwards mix as the family's
  order says, and never run two at once;
- *tight*: each start is 0 or the end of a task that must come before it. Starts that respect every
  waiting edge and are tight are the longest paths, by induction along the edges: the closed form is
  the left-shifted schedule, tick for tick;
- the peak: n is live when F(i,j) starts, if backwards 0..b-1 have ended by then and b has not and
  n = j + 1 - b. n is at most ``peak(i)`` at every start and equals it at the start ``peak_at(i)``;
- the makespan: no end is later, and one task ends then.

Symbols: p ranks, m microbatches, tF and tB ticks (real, above 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    implies,
    index,
    negate,
    time,
)
from bubbleproof.papers.theorems.theorem import Obligation, ObligationPart, obligations_of

P, M, J, K = (index(name) for name in ("p", "m", "j", "k"))
I = index("i")  # noqa: E741 - the papers' letter for a rank
TF, TB = time("tF"), time("tB")
PAIR = TF + TB
SHAPE = (P >= 1, M >= 1, TF > 0, TB > 0)
AT_J = (I >= 0, I <= P - 1, J >= 0, J <= M - 1)
AT_K = (K >= 0, K <= M - 1)

StartOf = Callable[[Term, Term], Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedForm:
    """Start times F(i, j) and B(i, j) for ranks i and microbatches j, and what they cost.

    Rank i runs ``warmup(i)`` forwards and then B(k) and F(warmup + k) in turn; None means that it
    runs all forwards before all backwards.
    """

    forward: StartOf
    backward: StartOf
    warmup: Callable[[Term], Term] | None
    peak: Callable[[Term], Term]
    peak_at: Callable[[Term], Term]
    makespan: Term


def obligations(form: ClosedForm) -> tuple[Obligation, ...]:
    """All that makes the closed form the left-shifted schedule with its peak and makespan."""
    parts = (*dependencies(form), *exclusion(form), *tightness(form), *peak(form), *makespan(form))
    return obligations_of(parts, SHAPE)


def dependencies(form: ClosedForm) -> list[ObligationPart]:
    """F waits for the rank before, B for the rank after and for its own F."""
    f, b = form.forward, form.backward
    return [
        ("no start before 0", AT_J, all_of(f(I, J) >= 0, b(I, J) >= 0)),
        ("F after F of the rank before", (*AT_J, I >= 1), f(I, J) >= f(I - 1, J) + TF),
        ("B after B of the next rank", (*AT_J, I <= P - 2), b(I, J) >= b(I + 1, J) + TB),
        ("B after its own F", AT_J, b(I, J) >= f(I, J) + TF),
    ]


def exclusion(form: ClosedForm) -> list[ObligationPart]:
    """One task at a time on a rank, in the family's order."""
    f, b = form.forward, form.backward
    later, any_two = (*AT_J, *AT_K, K >= J + 1), (*AT_J, *AT_K)
    in_order = [
        ("F in index order", later, f(I, K) >= f(I, J) + TF),
        ("B in index order", later, b(I, K) >= b(I, J) + TB),
    ]
    if form.warmup is None:
        return [*in_order, ("every B after every F", any_two, b(I, K) >= f(I, J) + TF)]
    first = form.warmup(I) + K - 1 >= J
    return [
        *in_order,
        ("F before B in the order", (*any_two, first), b(I, K) >= f(I, J) + TF),
        ("F after B in the order", (*any_two, negate(first)), f(I, J) >= b(I, K) + TB),
    ]


def tightness(form: ClosedForm) -> list[ObligationPart]:
    """Each start is 0 or the end of a task that comes before it."""
    f, b = form.forward, form.backward
    before_f = [
        f(I, J).equals(0),
        all_of(I >= 1, f(I, J).equals(f(I - 1, J) + TF)),
        all_of(J >= 1, f(I, J).equals(f(I, J - 1) + TF)),
    ]
    last = M - 1  # the last forward that precedes B(j) in the order
    if form.warmup is not None:
        w = form.warmup(I)
        last = choose(J + w <= M, J + w - 1, M - 1)
        before_f.append(all_of(w <= J, f(I, J).equals(b(I, J - w) + TB)))
    before_b = (
        all_of(I <= P - 2, b(I, J).equals(b(I + 1, J) + TB)),
        all_of(J >= 1, b(I, J).equals(b(I, J - 1) + TB)),
        b(I, J).equals(f(I, last) + TF),
    )
    return [("F is tight", AT_J, any_of(*before_f)), ("B is tight", AT_J, any_of(*before_b))]


def live(start: StartOf, end: StartOf, most: Term, reached_at: Term) -> list[ObligationPart]:
    """Activations are live from F's start to ``end``: ``most`` at microbatch ``reached_at``."""
    ended = index("ended")
    now, count = start(I, J), J + 1 - ended
    counted = (
        *AT_J,
        ended >= 0,
        ended <= M,
        implies(ended >= 1, end(I, ended - 1) <= now),
        implies(ended <= M - 1, end(I, ended) > now),
    )
    reached = (*counted, J.equals(reached_at))
    return [
        ("live activations never exceed the peak", counted, count <= most),
        ("the peak is reached", reached, count.equals(most)),
    ]


def peak(form: ClosedForm) -> list[ObligationPart]:
    """Live activations at the start of F(i, j), counted by the backwards that have ended."""
    return [
        *live(form.forward, lambda i, j: form.backward(i, j) + TB, form.peak(I), form.peak_at(I)),
        (
            "the peak is reached at a microbatch that exists",
            (I >= 0, I <= P - 1),
            all_of(form.peak_at(I) >= 0, form.peak_at(I) <= M - 1),
        ),
    ]


def makespan(form: ClosedForm) -> list[ObligationPart]:
    """Nothing ends later, and rank 0's last backward ends then; F(0, 0) starts at 0."""
    f, b, zero = form.forward, form.backward, I * 0
    return [
        ("no task ends after the makespan", AT_J, b(I, J) + TB <= form.makespan),
        (
            "the makespan is reached",
            (),
            all_of(f(zero, zero).equals(0), (b(zero, M - 1) + TB).equals(form.makespan)),
        ),
    ]


@dataclass(frozen=True, slots=True)
class HalvedIndex:
    """``number`` = 2 ``half`` + ``odd``; that it is so is a premise (``is_halved``).

    What depends on floor(i/2) or ceil(i/2) is said without a division. A rank and its neighbours
    are of either parity: with i = 2h + o and o = 0 or 1, the next index is 2(h+o) + (1-o) and the
    one before 2(h-1+o) + (1-o); so what is said of i in h and o can be said of its neighbours, and
    stays linear.
    """

    number: Term
    half: Term
    odd: Term

    @property
    def following(self) -> Self:
        """The index one larger."""
        return type(self)(self.number + 1, self.half + self.odd, 1 - self.odd)

    @property
    def preceding(self) -> Self:
        """The index one smaller."""
        return type(self)(self.number - 1, self.half - 1 + self.odd, 1 - self.odd)

    @property
    def ceiling(self) -> Term:
        """Half of it, rounded up."""
        return self.half + self.odd

    @property
    def is_halved(self) -> tuple[LogicFormula, ...]:
        """The parts are those of the number."""
        return self.number.equals(2 * self.half + self.odd), self.odd >= 0, self.odd <= 1
