"""ZB-V with tF = tI = tW and m >= 2p-1, for all p and m: the schedule in closed form.

Rank i of p holds stages i (chunk 0) and 2p-1-i (chunk 1) and starts its first task at tick i. From
then on it never waits, so a task starts at i plus the number of tasks before it. With d = p-1-i and
b = m - 2p + i + 1, the eight phases of the order (``theory.families.zb_v``) begin at

    A1 = i                    F0, 2d+1 times
    A2 = A1 + 2d + 1          F1 F0, i times
    A3 = A2 + 2i              F1 I1 W1, p-i times
    A4 = A3 + 3(p-i)          F0 I0 W0 F1 I1 W1, b times
    A5 = A4 + 6b              I0 W0 F1 I1 W1, d times
    A6 = A5 + 5d              I0 I1, i times
    A7 = A6 + 2i              I0 W0, p-i times
    A8 = A7 + 2(p-i)          W1, i times
    A9 = A8 + i               W0, i times

and end at i + 6m. Every rank holds at most 2p chunk activations, each from F to the end of W.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, I, J, M, P
from bubbleproof.papers.theorems.rank_rows import (
    RowMemory,
    TaskRow,
    one_at_a_time,
    unit_bound,
    waits_for,
)
from bubbleproof.papers.theorems.terms import Term, all_of, choose
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

SHAPE = (P >= 1, M >= 2 * P - 1)


@dataclass(frozen=True, slots=True)
class PhaseBegins:
    """When the phases of a rank begin, and how often the fourth and fifth repeat."""

    rank: Term

    @property
    def hops(self) -> Term:
        """d, the ranks after this one."""
        return P - 1 - self.rank

    @property
    def blocks(self) -> Term:
        """b, how often all six tasks come in turn."""
        return M - 2 * P + self.rank + 1

    def at(self, phase: int) -> Term:
        """The tick at which phase 1 to 9 begins."""
        i, d = self.rank, self.hops
        lengths = (2 * d + 1, 2 * i, 3 * (P - i), 6 * self.blocks, 5 * d, 2 * i, 2 * (P - i), i)
        begin = i
        for length in lengths[: phase - 1]:
            begin = begin + length
        return begin


def forward_down(i: Term, j: Term) -> Term:
    """Start of F of chunk 0."""
    at, d = PhaseBegins(i), P - 1 - i
    turned = j - 2 * d - 1
    late = choose(turned <= i - 1, at.at(2) + 1 + 2 * turned, at.at(4) + 6 * (turned - i))
    return choose(turned <= -1, i + j, late)


def forward_up(i: Term, j: Term) -> Term:
    """Start of F of chunk 1."""
    at = PhaseBegins(i)
    steady = j - P
    late = choose(
        steady <= at.blocks - 1,
        at.at(4) + 3 + 6 * steady,
        at.at(5) + 2 + 5 * (steady - at.blocks),
    )
    first = choose(j <= i - 1, at.at(2) + 2 * j, at.at(3) + 3 * (j - i))
    return choose(j <= P - 1, first, late)


def input_up(i: Term, j: Term) -> Term:
    """Start of I of chunk 1."""
    at = PhaseBegins(i)
    steady = j - P + i
    late = choose(
        steady <= at.blocks + at.hops - 1,
        at.at(5) + 3 + 5 * (steady - at.blocks),
        at.at(6) + 1 + 2 * (j - M + i),
    )
    main = choose(steady <= at.blocks - 1, at.at(4) + 4 + 6 * steady, late)
    return choose(steady <= -1, at.at(3) + 1 + 3 * j, main)


def weight_up(i: Term, j: Term) -> Term:
    """Start of W of chunk 1."""
    at = PhaseBegins(i)
    return choose(j <= M - i - 1, input_up(i, j) + 1, at.at(8) + j - M + i)


def input_down(i: Term, j: Term) -> Term:
    """Start of I of chunk 0."""
    at = PhaseBegins(i)
    late = choose(j <= M - P + i - 1, at.at(6) + 2 * (j - M + P), at.at(7) + 2 * (j - M + P - i))
    main = choose(j <= at.blocks + at.hops - 1, at.at(5) + 5 * (j - at.blocks), late)
    return choose(j <= at.blocks - 1, at.at(4) + 1 + 6 * j, main)


def weight_down(i: Term, j: Term) -> Term:
    """Start of W of chunk 0."""
    at = PhaseBegins(i)
    drained = choose(j <= M - i - 1, at.at(7) + 1 + 2 * (j - M + P), at.at(9) + j - M + i)
    return choose(j <= at.blocks + at.hops - 1, input_down(i, j) + 1, drained)


F0, F1 = TaskRow(name="F0", start=forward_down), TaskRow(name="F1", start=forward_up)
I1, W1 = TaskRow(name="I1", start=input_up), TaskRow(name="W1", start=weight_up)
I0, W0 = TaskRow(name="I0", start=input_down), TaskRow(name="W0", start=weight_down)


@dataclass(frozen=True, slots=True, kw_only=True)
class VForm:
    """The rows of a rank, the activations that it holds and the makespan."""

    f0: TaskRow = F0
    f1: TaskRow = F1
    i1: TaskRow = I1
    w1: TaskRow = W1
    i0: TaskRow = I0
    w0: TaskRow = W0
    peak: Term = 2 * P
    makespan: Term = 6 * M + P - 1

    @property
    def rows(self) -> tuple[TaskRow, ...]:
        return self.f0, self.f1, self.i1, self.w1, self.i0, self.w0


def waits(form: VForm) -> list[ObligationPart]:
    """Down the V and up again, forwards and backwards; the turns are on ranks p-1 and 0."""
    return [
        waits_for("F0 of the rank before", form.f0, (form.f0, I - 1), I >= 1),
        waits_for("F1 of the next rank", form.f1, (form.f1, I + 1), I <= P - 2),
        waits_for("F0 of the last rank", form.f1, (form.f0, I), I.equals(P - 1)),
        waits_for("I1 of the rank before", form.i1, (form.i1, I - 1), I >= 1),
        waits_for("its own F1", form.i1, (form.f1, I)),
        waits_for("I0 of the next rank", form.i0, (form.i0, I + 1), I <= P - 2),
        waits_for("I1 of the last rank", form.i0, (form.i1, I), I.equals(P - 1)),
        waits_for("its own F0", form.i0, (form.f0, I)),
        waits_for("its own I1", form.w1, (form.i1, I)),
        waits_for("its own I0", form.w0, (form.i0, I)),
    ]


def no_waits(form: VForm) -> list[ObligationPart]:
    """All 6m tasks of rank i lie within 6m ticks from tick i on; its first is at tick i."""
    inside = all_of(
        *(all_of(row.start(I, J) >= I, row.end(I, J) <= I + 6 * M) for row in form.rows)
    )
    first = form.f0.start(I, 0 * I).equals(I)
    return [
        ("rank i works from tick i on and is done at i + 6m", AT_J, inside),
        ("rank i starts when the rank before has run its first forward", (I >= 0, I <= P - 1),
         first),
    ]  # fmt: skip


def costs(form: VForm) -> list[ObligationPart]:
    """The peak and the makespan; the last rank is the last to end."""
    store = RowMemory(acquiring=(form.f0, form.f1), releasing=(form.w0, form.w1), most=form.peak)
    ends = all_of(*(row.end(I, J) <= form.makespan for row in form.rows))
    last = form.w0.end(P - 1, M - 1)
    return [
        *store.never_above(),
        *store.reached(form.f1, P - 1, I <= P - 1),
        ("no task ends after the makespan", AT_J, ends),
        ("the makespan is reached", (), last.equals(form.makespan)),
        *unit_bound(P - 1, 6 * M, form.makespan),
    ]


def theorem(form: VForm | None = None) -> Theorem:
    """ZB-V's left-shifted schedule; peak 2p, no waits, makespan 6m+p-1."""
    form = form or VForm()
    parts = (*waits(form), *one_at_a_time(form.rows), *no_waits(form), *costs(form))
    return Theorem(
        id="zb-v",
        statement=(
            "ZB-V with tF = tI = tW = 1 and m >= 2p-1: no rank waits between its first task, at "
            "tick i, and its last, which ends at i + 6m, so a left-shifted start is i plus the "
            "tasks before it; every rank's peak is 2p chunk activations held until W ends; the "
            "makespan is 6m+p-1, and no schedule of two chunks placed as a V is faster, however "
            "much memory it has"
        ),
        assumptions=(
            "p >= 1, m >= 2p-1",
            "tF = tI = tW = 1 (or any ticks in common: all starts scale)",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, i rank, j k microbatches; F0 I0 W0 of the chunk on stage i, "
            "F1 I1 W1 of that on stage 2p-1-i"
        ),
        argument=(
            "6m tasks of a tick, one at a time within 6m ticks, leave no tick empty: so every task "
            "but a rank's first starts when another of its rank ends, the first when the rank "
            "before has run its own, and such starts are the longest paths (induction). The bound "
            "is head plus busy time of the last rank"
        ),
        obligations=obligations_of(parts, SHAPE),
    )
