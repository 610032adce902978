"""V-Half's and V-Min's building blocks for all p and m: no collision, and what they hold.

At unit ticks rank i of p starts F of chunk 0 and 1, I of chunk 1 and 0 of microbatch j at

    F0   a i + 6j        F1   A - b i + 6j        I1   B + c i + 6j        I0   C - d i + 6j

(``theory.families.v_shape``: passes of a, b, c, d ticks a hop; a period is 6 ticks).

    V-Half   a b c d = 2 1 2 1, A = 3p-2, B = 3p-1 + l, C = 6p-2 + l, l = 3 for even p, else 0
    V-Min    a b c d = 1 1 1 1, A = 2p-1, B = 2p + l, C = 4p-1 + l, l = 2 where 3 | p, else 0

They are a schedule of F and I: the four starts of a rank differ modulo 6, which leaves two of every
six ticks for the two W. When an F starts, so many activations, its own among them, are between F
and I that 2((p+2) div 2) and 2((p+4) div 3), what the family holds with its W, are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, I, J, M, P
from bubbleproof.papers.theorems.rank_rows import RowMemory, TaskRow, one_at_a_time, waits_for
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, choose, index
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

PART, REST, LIMIT = index("h"), index("o"), index("limit")
PERIOD = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockForm:
    """Ticks a hop of the four passes, the turns A, B and C, and the most that a rank holds.

    ``divides`` says what p is of ``PART``, ``REST`` and the limit.
    """

    hops: tuple[int, int, int, int]
    turns: tuple[Term, Term, Term]
    most: Term
    divides: tuple[LogicFormula, ...]

    @property
    def rows(self) -> tuple[TaskRow, ...]:
        """F0, F1, I1 and I0."""
        a, b, c, d = self.hops
        first, second, third = self.turns
        return (
            TaskRow(name="F0", start=lambda i, j: a * i + PERIOD * j),
            TaskRow(name="F1", start=lambda i, j: first - b * i + PERIOD * j),
            TaskRow(name="I1", start=lambda i, j: second + c * i + PERIOD * j),
            TaskRow(name="I0", start=lambda i, j: third - d * i + PERIOD * j),
        )


HALF = BlockForm(
    hops=(2, 1, 2, 1),
    turns=(3 * P - 2, 3 * P + 2 - 3 * REST, 6 * P + 1 - 3 * REST),
    most=2 * PART + 2,
    divides=(P.equals(2 * PART + REST), REST >= 0, REST <= 1),
)
LATE = choose(REST <= 0, 2, 0)
MIN = BlockForm(
    hops=(1, 1, 1, 1),
    turns=(2 * P - 1, 2 * P + LATE, 4 * P - 1 + LATE),
    most=2 * PART + choose(REST <= 1, 2, 4),
    divides=(P.equals(3 * PART + REST), REST >= 0, REST <= 2),
)


def waits(form: BlockForm) -> list[ObligationPart]:
    """Down the V and up again, forwards and backwards."""
    f0, f1, i1, i0 = form.rows
    return [
        waits_for("F0 of the rank before", f0, (f0, I - 1), I >= 1),
        waits_for("F0 of the last rank", f1, (f0, I), I.equals(P - 1)),
        waits_for("F1 of the next rank", f1, (f1, I + 1), I <= P - 2),
        waits_for("its own F1", i1, (f1, I)),
        waits_for("I1 of the rank before", i1, (i1, I - 1), I >= 1),
        waits_for("I1 of the last rank", i0, (i1, I), I.equals(P - 1)),
        waits_for("I0 of the next rank", i0, (i0, I + 1), I <= P - 2),
        waits_for("its own F0", i0, (f0, I)),
    ]


def memory(form: BlockForm) -> list[ObligationPart]:
    """What is between F and I when an F starts."""
    f0, f1, i1, i0 = form.rows
    return RowMemory(acquiring=(f0, f1), releasing=(i1, i0), most=form.most).never_above()


def ends(form: BlockForm) -> list[ObligationPart]:
    """All F and I end a pass of the block after the last microbatch begins."""
    last = form.turns[2] + PERIOD * (M - 1) + 1
    return [
        ("F and I end with the last I0 of rank 0", AT_J,
         all_of(*(row.end(I, J) <= last for row in form.rows))),
    ]  # fmt: skip


def _theorem(name: str, heading: str, limit: str, form: BlockForm) -> Theorem:
    parts = (*waits(form), *one_at_a_time(form.rows), *memory(form), *ends(form))
    return Theorem(
        id=name,
        statement=(
            f"{heading}'s building block, repeated every 6 ticks, is a schedule of F and I without "
            f"collision on any rank, and when an F starts at most {limit} activations are between "
            "F and I on its rank, its own among them"
        ),
        assumptions=(
            "p >= 1, m >= 1, two chunks placed as a V",
            "tF = tI = tW = 1",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, i rank, j k microbatches, p = 2h + o (V-Half) or 3h + o "
            "(V-Min); F0 I0 of the chunk on stage i, F1 I1 of that on stage 2p-1-i"
        ),
        argument="Starts are lines; what holds of any two tasks holds of the schedule",
        obligations=obligations_of(parts, (P >= 1, M >= 1, *form.divides)),
    )


def half(form: BlockForm = HALF) -> Theorem:
    """V-Half's block: half of 1F1B's activations."""
    return _theorem("v-half-block", "V-Half", "2((p+2) div 2)", form)


def least(form: BlockForm = MIN) -> Theorem:
    """V-Min's block: a third of 1F1B's activations."""
    return _theorem("v-min-block", "V-Min", "2((p+4) div 3)", form)
