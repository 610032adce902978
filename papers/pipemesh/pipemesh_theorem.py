"""PipeMesh's order for all p, m, chunks, durations and sequences with elements of p or more.

Enqueue and dequeue sequences e and d cut the microbatches into operations; every rank runs the
forwards operation by operation, chunk 0 first, and the backwards likewise, chunk M-1 first. Let q
be the buffer: the most microbatches enqueued but not dequeued when the dequeue operation of some
microbatch begins (e_1 wherever Algorithm 1 works). Rank r begins with (M-1)q + 2(p-1-r) forwards,
at most all N = M*m, and then runs a forward and a backward in turn: the order of interleaved 1F1B
with Q = (M-1)q. Counted by places in those lists as in ``interleaved``,

- the forward of chunk c > 0 stands as many places behind that of chunk c-1 as its operation has
  microbatches, p or more; so does the backward of chunk c-1 behind that of chunk c;
- on the last stage a microbatch's forward stands at most Q places further than its backward.

``list_places`` proves this of the lists. It is all that the starts of ``interleaved`` need, so they
are a schedule of this order too.
"""

from __future__ import annotations

from bubbleproof.papers.field.interleaved_theorem import (
    ARGUMENT,
    AT_X,
    AT_Y,
    SHAPE,
    InterleavedForm,
    Q,
    X,
    Y,
    between_chunks,
    costs,
    on_last_stage,
    on_neighbours,
    order,
)
from bubbleproof.papers.theorems.closed_form import P
from bubbleproof.papers.theorems.list_places import SYMBOLS, Places, of_sequences
from bubbleproof.papers.theorems.terms import Term
from bubbleproof.papers.theorems.theorem import Theorem, obligations_of


def theorem(
    form: InterleavedForm | None = None, least: Term = P, places: Places | None = None
) -> Theorem:
    """Makespan and peak where every operation has ``least`` microbatches or more."""
    form = form or InterleavedForm()
    apart, any_two = (*AT_X, *AT_Y, X - least >= Y), (*AT_X, *AT_Y, Y <= X + Q)
    parts = (
        *on_neighbours(form),
        *between_chunks(form, Y, apart, what="an operation"),
        *on_last_stage(form, Y, any_two),
        *order(form),
        *costs(form),
    )
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
            f"{SYMBOLS}, of j's enqueue operation e with enqueued before, of its dequeue operation "
            "d with dequeued before"
        ),
        argument=f"{ARGUMENT}. The peak follows from the order alone",
        obligations=(*obligations_of(parts, SHAPE), *of_sequences(places or Places(), least)),
    )
