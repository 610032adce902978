"""PipeMesh's order for all p, m, chunks, durations and sequences with elements of p or more.

Enqueue and dequeue sequences e and d cut the microbatches into operations; every rank runs the
forwards operation by operation, chunk 0 first, and the backwards likewise, chunk M-1 first. Let q
be the buffer: the most microbatches enqueued but not dequeued when the dequeue operation of some
microbatch begins (e_1 wherever Algorithm 1 works). Rank r begins with (M-1)q + 2(p-1-r) forwards,
at most all N = M*m, and then runs a forward and a backward in turn: the order of interleaved 1F1B
with Q = (M-1)q. Counted by places in those lists as in ``interleaved``,

- the forward of chunk c > 0 stands as many places behind that of chunk c-1 as its operation has
  microbatches, p or more; so does the backward of chunk c-1 behind that of chunk c;
- the backward of a microbatch on the last stage stands at place M T + x of its list, and its
  forward there at (M-1) E + T + x, with T dequeued before its operation, E enqueued up to its own
  operation and E - T <= q: so at most Q places further.

That is all that the starts of ``interleaved`` need, so they are a schedule of this order too.
"""

from __future__ import annotations

from bubbleproof.papers.theorems.closed_form import TB, TF, P
from bubbleproof.papers.theorems.interleaved import (
    AT_X,
    AT_Y,
    SHAPE,
    InterleavedForm,
    Q,
    R,
    X,
    Y,
    costs,
    order,
)
from bubbleproof.papers.theorems.terms import Term, all_of
from bubbleproof.papers.theorems.theorem import Part, Theorem, obligations_of


def dependencies(form: InterleavedForm, least: Term) -> list[Part]:
    """The waits between ranks and operations, and of the last stage for its own forward."""
    f, b, zero, last = form.forward, form.backward, 0 * R, P - 1
    apart = (*AT_X, *AT_Y, X - least >= Y)
    return [
        ("no start before 0", AT_X, all_of(f(R, X) >= 0, b(R, X) >= 0)),
        ("F after F of the rank before", (*AT_X, R >= 1), f(R, X) >= f(R - 1, X) + TF),
        (
            "F of rank 0 after F of the last rank, an operation before",
            apart,
            f(zero, X) >= f(last, Y) + TF,
        ),
        ("B after B of the next rank", (*AT_X, R <= P - 2), b(R, X) >= b(R + 1, X) + TB),
        (
            "B of the last rank after B of rank 0, an operation after",
            apart,
            b(last, X) >= b(zero, Y) + TB,
        ),
        (
            "B of the last stage after its own F",
            (*AT_X, *AT_Y, Y <= X + Q),
            b(last, X) >= f(last, Y) + TF,
        ),
    ]


def theorem(form: InterleavedForm | None = None, least: Term = P) -> Theorem:
    """Makespan and peak where every operation has ``least`` microbatches or more."""
    form = form or InterleavedForm()
    parts = (*dependencies(form, least), *order(form), *costs(form))
    return Theorem(
        id="pipemesh",
        statement=(
            "PipeMesh's order, with every element of e and d at least p, has makespan "
            "(M*m+p-1)P, the least of any schedule, and peak min((M-1)q + 2(p-1-r) + 1, M*m) chunk "
            "activations on rank r, for any number of operations"
        ),
        assumptions=(
            "p, M >= 1; e and d are sequences of sum m, every element at least p",
            "q is the most microbatches enqueued and not dequeued when the dequeue operation of "
            "any microbatch begins",
            "tF, tB > 0, equal on all stages",
            "links take 0 ticks, no collectives",
        ),
        symbols=(
            "p ranks, m microbatches, M chunks per rank, r rank, x y places in the rank's order, "
            "Q = (M-1)q, N = M*m, tF tB ticks of a chunk (real), P = tF + tB"
        ),
        argument=(
            "These starts keep the family's orders and waits, so its left-shifted schedule ends no "
            "later; theorem makespan-bound (n = N) says that it ends no earlier. The peak follows "
            "from the order alone"
        ),
        obligations=obligations_of(parts, SHAPE),
    )
