"""GPipe for all p, m and all durations, and the two schedules that are GPipe over other pieces.

Rank i runs n forwards and then n backwards; the x-th of each starts at

    F(i,x) = (i + x) tF
    B(i,x) = (n + p - 1) tF + (p-1-i + x) tB

GPipe: n = m, a piece is a microbatch. TeraPipe: n = m*s, a piece is a slice of a microbatch, and
the backwards take the slices of each sample in reverse. Breadth-first: n = m*v, a piece is a
microbatch on a chunk; forward x on rank 0 also waits for forward x - m of the last rank (the chunk
before), backward x on the last rank for backward x - m of rank 0. In the last two, backward x
belongs to another piece than forward x; what matters is that each backward comes after *all*
forwards of its rank, its own among them.
"""

from __future__ import annotations

from bubbleproof.papers.theorems.closed_form import (
    PAIR,
    SHAPE,
    TB,
    TF,
    ClosedForm,
    I,
    J,
    M,
    P,
    obligations,
)
from bubbleproof.papers.theorems.terms import Term, index
from bubbleproof.papers.theorems.theorem import Obligation, Theorem, obligations_of


def forward(i: Term, j: Term) -> Term:
    """Start of the j-th forward of rank i in ticks; the pieces are counted by m here."""
    return (i + j) * TF


def backward(i: Term, j: Term) -> Term:
    """Start of the j-th backward of rank i in ticks."""
    return (M + P - 1) * TF + (P - 1 - i + j) * TB


FORM = ClosedForm(
    forward=forward,
    backward=backward,
    warmup=None,
    peak=lambda i: M + 0 * i,
    peak_at=lambda i: M - 1 + 0 * i,
    makespan=(M + P - 1) * PAIR,
)


_ARGUMENT = "Starts that respect all waiting edges and are tight are the longest paths (induction)"
_TIMES = "F(i,x) starts at (i+x)tF and B(i,x) at (n+p-1)tF + (p-1-i+x)tB"
_LETTERS = "p ranks, m microbatches, i rank, x place on the rank, tF tB ticks (real), P = tF + tB"
_UNIFORM = ("tF, tB > 0, equal on all stages", "links take 0 ticks")


def chunk_changes(form: ClosedForm, least: Term) -> tuple[Obligation, ...]:
    """A chunk's forward waits for the last rank's of the chunk before, backwards the other way.

    ``m`` of the form counts the n pieces; ``per_chunk`` are the microbatches of one chunk, at least
    ``least``.
    """
    per_chunk, zero, last = index("per_chunk"), 0 * I, P - 1
    counts = (per_chunk >= 1, per_chunk >= least, per_chunk <= M, per_chunk <= J, J <= M - 1)
    before, f, b = J - per_chunk, form.forward, form.backward
    parts = (
        ("F of rank 0 after F of the last rank, one chunk before", (),
         f(zero, J) >= f(last, before) + TF),
        ("B of the last rank after B of rank 0, one chunk after", (),
         b(last, J) >= b(zero, before) + TB),
    )  # fmt: skip
    return obligations_of(parts, (*SHAPE, *counts))


def theorem(form: ClosedForm = FORM) -> Theorem:
    """GPipe: peak m on every rank, makespan (m+p-1)P."""
    return _theorem("gpipe", "GPipe, n = m", "m", "", "p, m >= 1", (), obligations(form))


def terapipe(form: ClosedForm = FORM) -> Theorem:
    """TeraPipe: peak m*s slices on every rank, makespan (m*s+p-1)P, P per slice."""
    return _theorem(
        "terapipe",
        "TeraPipe, n = m*s slices",
        "m*s",
        "slice",
        "p, m, s >= 1",
        ("all slices take equally long",),
        obligations(form),
        "; the obligations write m for n",
    )


def breadth_first(form: ClosedForm = FORM, least: Term = P) -> Theorem:
    """Breadth-first with m >= p: peak m*v on every rank, makespan (m*v+p-1)P, P per chunk."""
    return _theorem(
        "bfs",
        "Breadth-first, n = m*v, m >= p",
        "m*v",
        "chunk",
        "p, v >= 1",
        ("m >= p",),
        (*obligations(form), *chunk_changes(form, least)),
        "; the obligations write m for n and per_chunk for m",
    )


def _theorem(
    name: str,
    heading: str,
    pieces: str,
    piece: str,
    counts: str,
    assumed: tuple[str, ...],
    proved: tuple[Obligation, ...],
    letters: str = "",
) -> Theorem:
    """GPipe over so many ``pieces`` per rank, one of which is a ``piece`` of a microbatch."""
    ticks = f" with the ticks of one {piece}" if piece else ""
    return Theorem(
        id=name,
        statement=(
            f"{heading}: {_TIMES}; every rank's peak is {pieces}; the makespan is "
            f"({pieces}+p-1)P{ticks}"
        ),
        assumptions=(counts, *assumed, *_UNIFORM),
        symbols=_LETTERS + letters,
        argument=_ARGUMENT,
        obligations=proved,
    )
