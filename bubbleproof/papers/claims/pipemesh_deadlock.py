"""When the program that PipeMesh's Algorithm 1 prints ends: a criterion in its own parameters.

Symbols as in ``pipemesh_schedules``: P ranks, M chunks, B microbatches, e and d the sequences, R
and S their lengths; q the most microbatches in the queue when a dequeue begins, its own enqueued
(``pipemesh.buffer``). Rank i begins with n_fwd = (M-1) e_1 + 2(P-i) forwards. Two things go wrong:

- n_fwd > M B: the list of forwards runs out on the first rank. It has enough exactly where
  (M-1) e_1 + 2(P-1) <= M B;
- M >= 2 and e_1 < q: the last rank, which has no forward to spare, is asked for a backward whose
  forward stands (M-1) q places ahead of it in the lists, later in its own order.

With every element of both sequences at least P, which section III-B requires, nothing else does.
With smaller elements other cycles, through several ranks, exist as well.

Source: Li et al., "PipeMesh" (TPDS 2025) Algorithm 1; the criterion is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bubbleproof.papers.claims.claim import Claim, Domain, Params, listed
from bubbleproof.papers.claims.pipemesh import buffer
from bubbleproof.papers.claims.pipemesh_schedules import is_filled, runs_literally, sequences
from bubbleproof.papers.claims.pipemesh_shapes import SHAPE, Shape
from bubbleproof.papers.claims.tpipe_statement import stated
from bubbleproof.theory.families.pipemesh_formulas import planned_enqueues


def is_free(at: Params) -> int:
    """1 where (M-1) e_1 + 2(P-1) <= M B, and M = 1 or q <= e_1."""
    has_enough = (at["v"] - 1) * at["e"] + 2 * (at["p"] - 1) <= at["v"] * at["m"]
    return int(has_enough and (at["v"] == 1 or buffer(at) <= at["e"]))


def _shapes(most_ranks: int, most_chunks: int, most: int) -> Iterator[Shape]:
    """Every pair of first elements with one to three operations on few ranks."""
    ranks, chunks = range(2, most_ranks + 1), range(1, most_chunks + 1)
    for p, v, m in product(ranks, chunks, range(1, most + 1)):
        for e, d in product(range(1, m + 1), repeat=2):
            lengths = [(1,) if first == m else (2, 3) for first in (e, d)]
            for R, S in product(*lengths):  # noqa: N806 - the paper's letters
                yield p, m, v, e, d, R, S


def _has_parts(at: Params) -> bool:
    """No operation is left without a microbatch."""
    return min(map(min, sequences(at))) >= 1


def _domain(text: str, ranks: int, chunks: int, most: int, *, filled: bool) -> Domain:
    def rows() -> Iterator[Shape]:
        for shape in _shapes(ranks, chunks, most):
            at = dict(zip(SHAPE, shape, strict=True))
            if _has_parts(at) and (is_filled(at) or not filled):
                yield shape

    return listed(text, SHAPE, rows)


_TEXT = "2 <= P <= {}, M <= {}, B <= {}, 1 to 3 operations each"
FILLED = _domain(_TEXT.format(3, 3, 7) + ", filled", 3, 3, 7, filled=True)
ANY = _domain(_TEXT.format(3, 3, 4) + ", any elements", 3, 3, 4, filled=False)


def _planned() -> Iterator[Shape]:
    """Section IV-B: e_1 = q, the rest as equal as can be, and as many equal dequeues."""
    for p, v, m in product((2, 3), (1, 2, 3), range(2, 10)):
        for q in range(p, m + 1):
            count = len(planned_enqueues(q, m))
            shape = (p, m, v, q, -(-m // count), count, count)
            if is_filled(dict(zip(SHAPE, shape, strict=True))):
                yield shape


PLANNED = listed(
    "P in 2 3, M <= 3, B <= 9, e and d of the planner for every queue size q >= P, filled",
    SHAPE,
    _planned,
)

CLAIMS: tuple[Claim, ...] = (
    stated("pipemesh.alg1.ends", "Algorithm 1, ours: a criterion", "For filled sequences the "
           "printed program ends exactly where (M-1) e_1 + 2(P-1) <= M B, and M = 1 or e_1 is at "
           "least q, the most microbatches in the queue when a dequeue begins.",
           "1 where it ends", is_free, "==", runs_literally, FILLED),
    stated("pipemesh.alg1.ends-only", "Algorithm 1, ours: a criterion", "Whatever the elements, "
           "the printed program ends nowhere else.", "1 where it ends", is_free, "<=",
           runs_literally, ANY),
    stated("pipemesh.alg1.ends-planned", "Algorithm 1 with §IV-B, ours: a criterion", "For the "
           "planner's sequences, filled, only the length matters: the printed program ends exactly "
           "where (M-1) q + 2(P-1) <= M B.", "1 where it ends",
           lambda at: int((at["v"] - 1) * at["e"] + 2 * (at["p"] - 1) <= at["v"] * at["m"]), "==",
           runs_literally, PLANNED),
)  # fmt: skip
