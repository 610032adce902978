"""SVPP with the largest f, for all p, v, s, m and all durations tF <= tB: makespan and peaks.

Each rank runs N = m*v*s forwards and backwards of a slice on a chunk. Count them by their place in
the rank's list of forwards (x) and of backwards (y), the same on all ranks: q microbatches form a
group, of q s = g slices, which passes chunk 0, then chunk 1, ...; backwards take chunks, and slices
of a sample, from the last. For slice k of microbatch b of group a on chunk c

    x = a v g + c g + b s + k            y = a v g + (v-1-c) g + b s + (s-1-k)

With Q = (v-1) g + s-1 and f = Q + p (Table 3's largest f) rank r, d = p-1-r hops before the last,
runs w = Q + 1 + min(p-1, 2d) forwards before its first backward; F(w+k) follows B(k) until f
forwards have run, and then F(f+k) follows B(k+r). These starts keep all waits, with P = tF + tB and
c = N - Q - 1:

    F(x) = (r + x) tF                                  for x < w
           (p + Q) tF + (x-w) P + (d+1) tB             for w <= x < f
           (p + Q) tF + (x-Q-1) P + tB - d tF          for x >= f
    B(y) = (p + Q) tF + y tB + min(y, c) tF + d tB

Chunks follow each other without a wait where g >= p: for s >= p with q = 1, or for s that divide p
with q = p/s and q | m. One chunk waits for none. Where tF > tB the order is slower than the least:
p = 3, m = 4, v = s = 1, tF = 2, tB = 1 is the smallest.

Source: MEPipe (EuroSys 2025) sections 4.1 to 4.4, Table 3; the order is that of ``svpp_orders``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.field.interleaved_theorem import (
    AT_X,
    AT_Y,
    InterleavedForm,
    N,
    Q,
    R,
    X,
    Y,
    between_chunks,
    on_last_stage,
    on_neighbours,
)
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, P
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    index,
    negate,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

RING = index("g")
FIRST = (P + Q) * TF  # the last rank's first backward
SHAPE = (P >= 1, Q >= 0, N >= Q + 1, TF > 0, TB >= TF, R >= 0, R <= P - 1)


def warmup(rank: Term) -> Term:
    """w: forwards of a rank before its first backward."""
    d = P - 1 - rank
    return Q + 1 + choose(2 * d <= P - 1, 2 * d, P - 1)


def peak(rank: Term) -> Term:
    """The most slices that a rank holds: w, or all N where there are fewer."""
    return choose(warmup(rank) <= N, warmup(rank), N)


def forward(rank: Term, x: Term) -> Term:
    """Start of F(x) in ticks."""
    d, w = P - 1 - rank, warmup(rank)
    before_f = FIRST + (x - w) * PAIR + (d + 1) * TB
    late = choose(x <= Q + P - 1, before_f, FIRST + (x - Q - 1) * PAIR + TB - d * TF)
    return choose(x <= w - 1, (rank + x) * TF, late)


def backward(rank: Term, y: Term) -> Term:
    """Start of B(y) in ticks."""
    c = N - Q - 1
    return FIRST + y * TB + choose(y <= c, y, c) * TF + (P - 1 - rank) * TB


FORM = InterleavedForm(forward=forward, backward=backward, warmup=warmup, peak=peak)


def precedes(form: InterleavedForm, x: Term, y: Term) -> LogicFormula:
    """Whether F(x) comes before B(y) on rank r, whose forwards from f on come r backwards later."""
    w, f = form.warmup(R), Q + P
    return any_of(
        x <= w - 1,
        all_of(x <= f - 1, x - w + 1 <= y),
        all_of(x >= f, x - f + R + 1 <= y),
    )


def waits(form: InterleavedForm) -> list[ObligationPart]:
    """Neighbouring ranks, chunks a ring apart, and the last stage's own forward."""
    ring = (*AT_X, X >= RING, RING >= P)
    return [
        *on_neighbours(form),
        *between_chunks(form, X - RING, ring),
        *on_last_stage(form, Y, (*AT_X, *AT_Y, Y <= X + Q)),
    ]


def order(form: InterleavedForm) -> list[ObligationPart]:
    """One task at a time, in the order of the warm-up and of f."""
    f, b = form.forward, form.backward
    later, before = (*AT_X, *AT_Y, Y >= X + 1), precedes(form, X, Y)
    return [
        ("F in order", later, f(R, Y) >= f(R, X) + TF),
        ("B in order", later, b(R, Y) >= b(R, X) + TB),
        ("F before B in the order", (*AT_X, *AT_Y, before), b(R, Y) >= f(R, X) + TF),
        ("F after B in the order", (*AT_X, *AT_Y, negate(before)), f(R, X) >= b(R, Y) + TB),
    ]


def costs(form: InterleavedForm) -> list[ObligationPart]:
    """The makespan is kept and reached, and the order alone fixes the peak.

    Y backwards precede F(x): the one before them does, and the next one does not.
    """
    top, live = form.peak(R) - 1, X + 1 - Y
    counted = (
        *AT_X,
        Y >= 0,
        Y <= N,
        any_of(Y <= 0, negate(precedes(form, X, Y - 1))),
        any_of(Y >= N, precedes(form, X, Y)),
    )
    return [
        ("no task ends after the makespan", AT_X, form.backward(R, X) + TB <= form.makespan),
        ("the first task starts at 0", (), form.forward(0 * R, 0 * R).equals(0)),
        ("the makespan is reached", (), (form.backward(0 * R, N - 1) + TB).equals(form.makespan)),
        ("live activations never exceed the peak", counted, live <= form.peak(R)),
        ("the peak is reached at the last forward of the warm-up", (*counted, X.equals(top)),
         all_of(top >= 0, top <= N - 1, live.equals(form.peak(R)))),
    ]  # fmt: skip


HINTS = tuple(
    (count, ticks)
    for count in (
        *(P - 1 - R, R, X - Q - 1, N - Q - 1, Y - X, X - warmup(R), RING - P, P - 1 - R - Y),
        *(X - Q - P, X - Q - P + R - Y, X - warmup(R) - Y, Y - N + Q + 1, X - Q - 1 - Y, 2 * R - P),
        *(Q + P - 1 - X, P - 1 - 2 * (P - 1 - R), X - Y, Q + 2 * (P - 1 - R) - X, Y - Q - P),
        *(P - 1 - 2 * R, N - 1 - X, Y - warmup(R), Y),
    )
    for ticks in (TF, TB, TB - TF)
)

# The lists: groups of q microbatches of s slices, on v chunks.
V, SLICES, SIZE, GROUPS = index("v"), index("s"), index("q"), index("groups")
A, C, B, K = index("a"), index("c"), index("b"), index("k")
OF_LIST = (V >= 1, SLICES >= 1, SIZE >= 1, GROUPS >= 1)
AT = (A >= 0, A <= GROUPS - 1, C >= 0, C <= V - 1, B >= 0, B <= SIZE - 1, K >= 0, K <= SLICES - 1)
WHOLE = V * SIZE * SLICES * GROUPS
LEAD = (V - 1) * SIZE * SLICES + SLICES - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlaces:
    """Where slice k of microbatch b of group a stands: the list counts chunk and slice upwards."""

    of: Callable[[Term, Term, Term, Term], Term] = lambda a, c, b, k: (
        a * V * SIZE * SLICES + c * SIZE * SLICES + b * SLICES + k
    )

    def forward(self) -> Term:
        """Of F on chunk C."""
        return self.of(A, C, B, K)

    def backward(self) -> Term:
        """Of B on chunk C."""
        return self.of(A, V - 1 - C, B, SLICES - 1 - K)


PLACES = SlicePlaces()


def lists(places: SlicePlaces) -> list[ObligationPart]:
    """Place by place through the list, and what the waits span."""
    here, of, zero = places.forward(), places.of, 0 * P
    ends_slices, ends_sample = K.equals(SLICES - 1), B.equals(SIZE - 1)
    return [
        ("list: begins at place 0", (), of(zero, zero, zero, zero).equals(0)),
        ("list: the next slice is one place further", AT, of(A, C, B, K + 1).equals(here + 1)),
        ("list: the next microbatch begins one place further", (*AT, ends_slices),
         of(A, C, B + 1, zero).equals(here + 1)),
        ("list: the next chunk begins one place further", (*AT, ends_slices, ends_sample),
         of(A, C + 1, zero, zero).equals(here + 1)),
        ("list: the next group begins one place further",
         (*AT, ends_slices, ends_sample, C.equals(V - 1)),
         of(A + 1, zero, zero, zero).equals(here + 1)),
        ("list: ends at place N-1", (),
         of(GROUPS - 1, V - 1, SIZE - 1, SLICES - 1).equals(WHOLE - 1)),
        ("list: one chunk stands a ring behind the other", AT,
         of(A, C + 1, B, K).equals(here + SIZE * SLICES)),
        ("last stage: the forward stands at most Q places after the backward",
         (*AT, C.equals(V - 1)), here <= places.backward() + LEAD),
        ("sizes: Q >= 0 and N >= Q + 1", (), all_of(LEAD >= 0, WHOLE >= LEAD + 1)),
    ]  # fmt: skip


LIST_HINTS = (
    (SIZE, SLICES),
    (B - SIZE + 1, SLICES),
    (C - V + 1, SIZE * SLICES),
    (SIZE - 1, SLICES),
    (V - 1, SIZE * SLICES),
    (V, SIZE * SLICES),
    (GROUPS - 1, V * SIZE * SLICES),
)


def _theorem(
    name: str, heading: str, sizes: str, ring: str, form: InterleavedForm, places: SlicePlaces
) -> Theorem:
    parts = (*waits(form), *order(form), *costs(form))
    return Theorem(
        id=name,
        statement=(
            f"SVPP with the largest f, {heading}, and tF <= tB has makespan (m*v*s+p-1)P, the "
            f"least of any schedule, and peak min(Q + 1 + min(p-1, 2(p-1-r)), m*v*s) slices on a "
            f"chunk on rank r, with Q = (v-1)*{ring} + s-1, so that none holds more than f = Q + p"
        ),
        assumptions=(
            sizes,
            "0 < tF <= tB, equal on all stages and slices",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, v chunks per rank, s slices, r rank, x y places in the "
            "rank's lists, g slices of a group, N = m*v*s, tF tB ticks of a slice on a chunk "
            "(real), P = tF + tB; of the lists a group of q microbatches, b microbatch of it, c "
            "chunk, k slice"
        ),
        argument=(
            "The family's orders are lists of places, whose waits span what is said here. These "
            "starts keep the orders and waits, so its left-shifted schedule ends no later; theorem "
            "makespan-bound (n = N) says that it ends no earlier. The peak follows from the order"
        ),
        obligations=(
            *obligations_of(parts, SHAPE, HINTS),
            *obligations_of(lists(places), OF_LIST, LIST_HINTS),
        ),
    )


def theorem(form: InterleavedForm | None = None, places: SlicePlaces | None = None) -> Theorem:
    """One microbatch a group: as many slices as ranks or more, or one chunk."""
    return _theorem(
        "svpp-largest",
        "s >= p or one chunk",
        "p, m, v, s >= 1, and s >= p or v = 1",
        "s",
        form or FORM,
        places or SlicePlaces(),
    )


def few_slices(form: InterleavedForm | None = None, places: SlicePlaces | None = None) -> Theorem:
    """Groups of p/s microbatches."""
    return _theorem(
        "svpp-few-slices",
        "s that divides p and p/s that divides m",
        "p, m, v, s >= 1, s divides p and p/s divides m",
        "p",
        form or FORM,
        places or SlicePlaces(),
    )
