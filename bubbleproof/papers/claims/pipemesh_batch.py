"""PipeMesh's two meanings of B: the batch of an iteration, and the microbatches of one pipeline.

Section IV counts B microbatches per pipeline, Table IV prints the batch size per iteration under
the same letter, and section VI accumulates gradients of B/P microbatches per device. With
microbatches of 1 (section VI) and D replicas a pipeline runs B/D of Table IV's B, so B/P is a
misprint for B/D; at P = D, the table's first four rows, the two agree.

How many a pipeline ran is asked of the table itself: T_bubble is P-1 of the M n passes that the
computation takes (tab4.bubble), n = (P-1) T_comp / (M T_bubble). A row of Table IV is a case
``row``; ``q`` is PipeMesh's buffer queue size.

Source: Li et al., "PipeMesh" (TPDS 2025) section VI, Table IV.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params
from bubbleproof.papers.claims.pipemesh_tables import ALL, row
from bubbleproof.papers.claims.tpipe_statement import printed, stated
from bubbleproof.theory.families.pipemesh_formulas import planned_enqueues

QUEUES = Domain(
    text="PipeMesh's rows of Table IV with their buffer queue sizes",
    points=({"row": 0, "q": 6}, {"row": 8, "q": 8}, {"row": 4, "q": 12}, {"row": 12, "q": 12}),
)


def microbatches(at: Params) -> Fraction:
    """n, from a row's times."""
    of = row(at)
    return (of.P - 1) * of.compute / (of.M * of.bubble)


def operations(at: Params, total: int) -> int:
    """How many enqueue operations the planner makes of ``total`` microbatches (section IV-B)."""
    return len(planned_enqueues(at["q"], total))


CLAIMS: tuple[Claim, ...] = (
    stated("pipemesh.sec6.batch", "Table IV and §IV", "Table IV's B is the B of section IV, the "
           "microbatches per pipeline.", "microbatches that a row's times tell",
           lambda at: row(at).B, "~0", microbatches, ALL, "sec6.replicas"),
    stated("pipemesh.sec6.accumulation", "§VI", "A device accumulates gradients of B/P "
           "microbatches.", "microbatches that a row's times tell",
           lambda at: Fraction(row(at).B, row(at).P), "~0", microbatches, ALL, "sec6.replicas"),
    stated("pipemesh.sec6.replicas", "§VI, corrected: B/P is a misprint", "A device accumulates "
           "gradients of B/D microbatches, B that of Table IV.",
           "microbatches that a row's times tell", lambda at: Fraction(row(at).B, row(at).D), "~0",
           microbatches, ALL),
    stated("pipemesh.sec6A.two", "§VI-A, with B/D microbatches", "The enqueue sequences of Table "
           "IV contain two elements.", "enqueue operations of the planner", printed("2"), "==",
           lambda at: operations(at, row(at).B // row(at).D), QUEUES),
    stated("pipemesh.sec6A.two-batch", "§VI-A, with Table IV's B", "They contain two elements if B "
           "is the number of microbatches.", "enqueue operations of the planner", printed("2"),
           "==", lambda at: operations(at, row(at).B), QUEUES, "sec6A.two"),
)  # fmt: skip
