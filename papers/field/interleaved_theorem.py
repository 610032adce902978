"""Interleaved 1F1B with p | m: its makespan is exactly (m*v+p-1)P, for all tF and tB.

Each rank runs N = m*v forwards and backwards. Count them by their place in the rank's order of
forwards (x) and of backwards (n); with p | m these orders are the same on all ranks, and the places
that ``list_places`` proves say that

    F(x) of rank r waits for F(x) of rank r-1, of rank 0 for F(x-p) of rank p-1 (chunk before),
    B(n) of rank r waits for B(n) of rank r+1, of rank p-1 for B(n-p) of rank 0 (chunk after), or,
    on the last stage, for its own forward, F(n + (v-1)p).

With d = p-1-r and w = (v-1)p + 1, rank r warms up with w + 2d forwards (all N where m = p leaves
fewer) and then runs B(n) and F(w+2d+n) in turn. The left-shifted starts depend on which of tF and
tB is larger, but the makespan needs only *some* starts that keep these
orders and waits: left-shifting does not end later, and no schedule ends earlier than (N+p-1)P
(theorem ``makespan-bound``). These starts are, with X = p*v*tF and c = N - w - 2d, the number of
forwards after the warm-up,

    F(x) = (r + x) tF                  for x < w+d
           X + (x-w-d) P               for w+d <= x < w+2d
           X + (x-w-d) P + tB          for x >= w+2d
    B(n) = X + (n+d) P                 for n < c
           X + (n+d) P + tF            for c <= n < c+d
           X + (c+2d) tF + (n+d) tB    for n >= c+d

The last rank never idles. The peak follows from the order alone: when F(x) starts, exactly the
backwards before it in the order have ended, and that leaves at most min(w + 2d, N) activations,
BPipe Appendix A's (v-1)p + 2(p-r-1) + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, P
from bubbleproof.papers.theorems.list_places import SYMBOLS, Places, of_groups
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, choose, index, negate
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

# Q is (v-1)p and N is m*v, which keeps every index linear. From p | m and v >= 1 follows that
# N = m*v is at least p*v = Q+p, all that the proof needs of them.
R, X, Y, Q, N = (index(name) for name in ("r", "x", "y", "Q", "N"))
SHAPE = (P >= 1, Q >= 0, N >= Q + P, TF > 0, TB > 0, R >= 0, R <= P - 1)
AT_X, AT_Y = (X >= 0, X <= N - 1), (Y >= 0, Y <= N - 1)
ORIGIN = (Q + P) * TF
W = Q + 1

ChunkStartOf = Callable[[Term, Term], Term]
ARGUMENT = (
    "The family's orders are lists of places, whose waits span what is said here. These starts "
    "keep the orders and waits, so its left-shifted schedule ends no later; theorem makespan-bound "
    "(n = N) says that it ends no earlier"
)


def warmup(rank: Term) -> Term:
    """Forwards before the first backward of a rank: (v-1)p + 1 + 2(p-1-r)."""
    return W + 2 * (P - 1 - rank)


def peak(rank: Term) -> Term:
    """Activations that rank r holds: its warm-up, or all N where there are fewer."""
    return choose(warmup(rank) <= N, warmup(rank), N)


def forward(rank: Term, x: Term) -> Term:
    """Start of F(x) in ticks."""
    d = P - 1 - rank
    steady = ORIGIN + (x - W - d) * PAIR
    late = choose(x <= W + 2 * d - 1, steady, steady + TB)
    return choose(x <= W + d - 1, (rank + x) * TF, late)


def backward(rank: Term, n: Term) -> Term:
    """Start of B(n) in ticks."""
    d = P - 1 - rank
    c = N - warmup(rank)
    steady = ORIGIN + (n + d) * PAIR
    late = choose(n <= c + d - 1, steady + TF, ORIGIN + (c + 2 * d) * TF + (n + d) * TB)
    return choose(n <= c - 1, steady, late)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterleavedForm:
    """The starts, the warm-up that fixes the order, the makespan and the peak."""

    forward: ChunkStartOf = forward
    backward: ChunkStartOf = backward
    warmup: Callable[[Term], Term] = warmup
    peak: Callable[[Term], Term] = peak
    makespan: Term = (N + P - 1) * PAIR


def on_neighbours(form: InterleavedForm) -> list[ObligationPart]:
    """The waits for a neighbouring rank on the same chunk: at the same place."""
    f, b = form.forward, form.backward
    return [
        ("no start before 0", AT_X, all_of(f(R, X) >= 0, b(R, X) >= 0)),
        ("F after F of the rank before", (*AT_X, R >= 1), f(R, X) >= f(R - 1, X) + TF),
        ("B after B of the next rank", (*AT_X, R <= P - 2), b(R, X) >= b(R + 1, X) + TB),
    ]


def between_chunks(
    form: InterleavedForm,
    earlier: Term,
    premises: tuple[LogicFormula, ...],
    *,
    of_forwards: tuple[LogicFormula, ...] = (),
    what: str = "one chunk",
) -> list[ObligationPart]:
    """The waits of the outer ranks for the other chunk's task, at place ``earlier`` of X's list."""
    f, b, zero, last = form.forward, form.backward, 0 * R, P - 1
    return [
        (f"F of rank 0 after F of the last rank, {what} before", (*premises, *of_forwards),
         f(zero, X) >= f(last, earlier) + TF),
        (f"B of the last rank after B of rank 0, {what} after", premises,
         b(last, X) >= b(zero, earlier) + TB),
    ]  # fmt: skip


def on_last_stage(
    form: InterleavedForm, own: Term, premises: tuple[LogicFormula, ...]
) -> list[ObligationPart]:
    """The wait of the last stage's backward for its own forward, at place ``own``."""
    name, last = "B of the last stage after its own F", P - 1
    return [(name, premises, form.backward(last, X) >= form.forward(last, own) + TF)]


def dependencies(
    form: InterleavedForm, of_forwards: tuple[LogicFormula, ...] = ()
) -> list[ObligationPart]:
    """All waits; forwards may wait for the chunk before at fewer places."""
    return [
        *on_neighbours(form),
        *between_chunks(form, X - P, (*AT_X, X >= P), of_forwards=of_forwards),
        *on_last_stage(form, X + Q, (*AT_X, X + Q <= N - 1)),
    ]


def order(form: InterleavedForm) -> list[ObligationPart]:
    """One task at a time: F(x) precedes B(y) on rank r where x < warmup + y."""
    f, b = form.forward, form.backward
    first = form.warmup(R) + Y - 1 >= X
    later = (*AT_X, *AT_Y, Y >= X + 1)
    return [
        ("F in order", later, f(R, Y) >= f(R, X) + TF),
        ("B in order", later, b(R, Y) >= b(R, X) + TB),
        ("F before B in the order", (*AT_X, *AT_Y, first), b(R, Y) >= f(R, X) + TF),
        ("F after B in the order", (*AT_X, *AT_Y, negate(first)), f(R, X) >= b(R, Y) + TB),
    ]


def costs(form: InterleavedForm) -> list[ObligationPart]:
    """The makespan is kept and reached, and the order alone fixes the peak."""
    ended = choose(form.warmup(R) - 1 >= X, 0, X - form.warmup(R) + 1)
    live, top = X + 1 - ended, form.peak(R) - 1
    return [
        ("no task ends after the makespan", AT_X, form.backward(R, X) + TB <= form.makespan),
        ("the first task starts at 0", (), form.forward(0 * R, 0 * R).equals(0)),
        ("the makespan is reached", (), (form.backward(0 * R, N - 1) + TB).equals(form.makespan)),
        ("live activations never exceed the peak", AT_X, live <= form.peak(R)),
        ("the peak is reached at the last forward of the warm-up", (X.equals(top),),
         all_of(top >= 0, top <= N - 1, live.equals(form.peak(R)))),
    ]  # fmt: skip


def theorem(form: InterleavedForm | None = None, places: Places | None = None) -> Theorem:
    """Makespan (m*v+p-1)P and peak (v-1)p + 2(p-r-1) + 1 of interleaved 1F1B."""
    form = form or InterleavedForm()
    parts = (*dependencies(form), *order(form), *costs(form))
    return Theorem(
        id="interleaved",
        statement=(
            "Interleaved 1F1B with p | m has makespan (m*v+p-1)P, the least of any schedule, and "
            "peak min((v-1)p + 2(p-r-1) + 1, m*v) chunk activations on rank r"
        ),
        assumptions=(
            "p, v >= 1, p divides m",
            "tF, tB > 0, equal on all stages",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, v chunks per rank, r rank, x y places in the rank's order, "
            "Q = (v-1)p, N = m*v, tF tB ticks of a chunk (real), P = tF + tB"
            f"{SYMBOLS}, the a-th of groups"
        ),
        argument=(
            f"{ARGUMENT}. The starts are not the left-shifted ones; theorem interleaved-starts has "
            "those where tB >= tF"
        ),
        obligations=(*obligations_of(parts, SHAPE), *of_groups(places or Places())),
    )
