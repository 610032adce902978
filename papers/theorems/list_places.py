"""From a schedule to its lists: where F(c, j) and B(c, j) stand in every rank's lists of places.

The microbatches are cut into operations, once for the list of forwards and once for that of
backwards, the same on all ranks. An operation runs chunk after chunk, chunk 0 first forwards and
chunk v-1 first backwards, and in each chunk its microbatches in order. With ``before`` microbatches
in the operations before j's and ``size`` in its own, before <= j < before + size,

    F(c, j) stands at v before + c size + (j - before)
    B(c, j) stands at v before + (v-1-c) size + (j - before)

Interleaved 1F1B with p | m has operations of p microbatches, its groups, in both lists. PipeMesh
has any of p or more, its enqueue and its dequeue sequence. What the theorems on places
(``interleaved``, ``interleaved_starts``, ``pipemesh``) take from the schedule is obligations here:

- *list*: its first task stands at place 0, the task after each (the next microbatch of the
  operation, the next chunk's first, the next operation's first) one place further, the last at
  N-1, N = v m. So the places are 0 to N-1, each once, in the order of the list (induction);
- *chunks*: the task of another rank that begins or goes on before a chunk's, the same microbatch
  one chunk before (forwards) or after (backwards), stands an operation's size before it;
- *last stage*: F(v-1, j) stands at most Q = (v-1) q places after B(v-1, j), where q is the most
  microbatches enqueued and not dequeued when the dequeue operation of any microbatch begins;
- *sizes*: Q >= 0 and N >= Q + p.

No place depends on the rank: a task and what it waits for on a neighbouring rank, on the same
chunk, stand at one place. Every other backward comes after its own forward since backwards go up
the stages that forwards went down, from a last stage where it does (induction).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import P
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, any_of, index
from bubbleproof.papers.theorems.theorem import Obligation, ObligationPart, obligations_of

V, M, C, J = (index(name) for name in ("v", "m", "c", "j"))
LAST = V - 1
SHAPE = (P >= 1, V >= 1)
SYMBOLS = (
    "; of the lists (list_places) c chunk of v, j microbatch of m, operations of size microbatches "
    "with before in those before"
)
AT_C = (C >= 0, C <= LAST)
NEXT_SIZE = index("next_size")


@dataclass(frozen=True, slots=True)
class MicrobatchRange:
    """Microbatches ``before`` to ``end - 1``."""

    before: Term
    size: Term

    @property
    def end(self) -> Term:
        return self.before + self.size

    def has(self, microbatch: Term) -> LogicFormula:
        return all_of(self.before >= 0, microbatch >= self.before, microbatch <= self.end - 1)


PlaceOf = Callable[[Term, Term, MicrobatchRange], Term]  # of a chunk's microbatch in its operation


def forward_place(chunk: Term, microbatch: Term, operation: MicrobatchRange) -> Term:
    """Where F(c, j) stands."""
    return V * operation.before + chunk * operation.size + microbatch - operation.before


def backward_place(chunk: Term, microbatch: Term, operation: MicrobatchRange) -> Term:
    """Where B(c, j) stands."""
    return forward_place(LAST - chunk, microbatch, operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of forwards and of backwards; a twin changes one."""

    forward: PlaceOf = forward_place
    backward: PlaceOf = backward_place


def _list(kind: str, place: PlaceOf, least: Term, *, is_rising: bool) -> list[ObligationPart]:
    """Place by place through the list, and the distance of one chunk from the next."""
    operation, some = (
        MicrobatchRange(index("before"), index("size")),
        MicrobatchRange(0 * V, index("size")),
    )
    first, last, step = (0 * V, LAST, 1) if is_rising else (LAST, 0 * V, -1)
    at = (*AT_C, operation.has(J), operation.size >= least)
    end, following = operation.end, MicrobatchRange(operation.end, NEXT_SIZE)
    final = MicrobatchRange(M - operation.size, operation.size)
    goes_on = C <= LAST - 1 if is_rising else C >= 1
    return [
        (f"{kind} list: begins at place 0", (some.size >= least,),
         place(first, 0 * V, some).equals(0)),
        (f"{kind} list: the next microbatch is one place further", (*at, operation.has(J + 1)),
         place(C, J + 1, operation).equals(place(C, J, operation) + 1)),
        (f"{kind} list: the next chunk begins one place further", (*at, goes_on),
         place(C + step, operation.before, operation).equals(place(C, end - 1, operation) + 1)),
        (f"{kind} list: the next operation begins one place further", at,
         place(first, end, following).equals(place(last, end - 1, operation) + 1)),
        (f"{kind} list: ends at place N-1", (operation.size >= least, operation.size <= M),
         place(last, M - 1, final).equals(V * M - 1)),
        (
            f"{kind} list: one chunk stands an operation behind the other",
            (*at, goes_on),
            all_of(
                place(C + step, J, operation).equals(place(C, J, operation) + operation.size),
                place(C + step, J, operation) >= place(C, J, operation) + least,
            ),
        ),
    ]  # fmt: skip


def lists(places: Places, least: Term = P) -> list[ObligationPart]:
    """Both lists, of operations of ``least`` microbatches or more."""
    return [
        *_list("F", places.forward, least, is_rising=True),
        *_list("B", places.backward, least, is_rising=False),
    ]


def of_sequences(places: Places, least: Term) -> tuple[Obligation, ...]:
    """PipeMesh: any enqueue and dequeue operations of ``least`` microbatches or more."""
    q, enqueue = index("q"), MicrobatchRange(index("enqueued"), index("e"))
    dequeue = MicrobatchRange(index("dequeued"), index("d"))
    waiting = enqueue.end - dequeue.before  # when the dequeue operation of j begins
    at = (enqueue.has(J), dequeue.has(J), enqueue.end <= M)
    parts: list[ObligationPart] = [
        *lists(places, least),
        (
            "last stage: the forward stands at most Q places after the backward",
            (*at, waiting <= q),
            places.forward(LAST, J, enqueue) <= places.backward(LAST, J, dequeue) + LAST * q,
        ),
        (
            "sizes: Q >= 0 and N >= Q + p",
            (*at, q.equals(waiting), enqueue.size >= least),
            all_of(LAST * q >= 0, LAST * q + P <= V * M),
        ),
    ]
    hints = ((LAST, q - waiting), (LAST, M - q), (LAST, q))
    return obligations_of(parts, SHAPE, hints)


def of_groups(places: Places, size: Term = P, *, is_timed: bool = False) -> tuple[Obligation, ...]:
    """Interleaved 1F1B: groups of p in both lists, PipeMesh's of ``size``, which is p or more.

    ``is_timed`` asks for the starts' places too.
    """
    number, groups, q = index("a"), index("groups"), LAST * size
    group = MicrobatchRange(number * size, size)
    whole = V * size * groups  # N
    at = (*AT_C, number >= 0, number * size <= J, number * size + size - 1 >= J)
    place = places.forward(C, J, group)
    parts: list[ObligationPart] = [
        *lists(places),
        (
            "last stage: the forward stands Q places after the backward",
            at,
            places.forward(LAST, J, group).equals(places.backward(LAST, J, group) + q),
        ),
        ("sizes: Q >= 0 and N >= Q + p", (groups >= 1,), all_of(q >= 0, whole >= q + P)),
    ]
    if is_timed:
        second = MicrobatchRange(1 * size, size)
        parts += [
            (
                "sizes: N is Q + a group or twice that or more, Q is 0 or a group or more",
                (groups >= 1,),
                all_of(
                    any_of(whole.equals(q + size), whole >= 2 * q + 2 * size),
                    any_of(q.equals(0), q >= size),
                ),
            ),
            (
                "places v groups on, as many as a group has, are of chunk 0",
                (*at, C >= 1),
                any_of(place <= q + size - 1, place >= q + 2 * size),
            ),
            (
                "the place v + 1 groups on is of chunk 1",
                (V >= 2,),
                places.forward(1 + 0 * V, 1 * size, second).equals(q + 2 * size),
            ),
        ]
    by_p = (V, LAST, LAST - 1, LAST - C, C - 1, number)
    by_chunks = (groups - 1, groups - 2, number - 1, number)
    hints = (*((e, size) for e in by_p), *((e, V * size) for e in by_chunks))
    return obligations_of(parts, (*SHAPE, size >= P), hints)
