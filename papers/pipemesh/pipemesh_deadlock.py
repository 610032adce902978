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

from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import Domain, Params, domain
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh.pipemesh_schedules import is_filled, runs_literally, sequences


def has_enough(at: Params) -> bool:
    """(M-1) e_1 + 2(P-1) <= M B."""
    return forms.warm_up_forwards(at["p"], at["v"], at["e"], 0) <= at["v"] * at["m"]


def is_free(at: Params) -> int:
    """1 where there are forwards enough, and M = 1 or q <= e_1."""
    return int(has_enough(at) and (at["v"] == 1 or forms.buffer(*sequences(at)) <= at["e"]))


def _has_parts(at: Params) -> bool:
    """No operation is left without a microbatch."""
    return min(map(min, sequences(at))) >= 1


def _few_ranks(text: str, ranks: int, chunks: int, most: int, *, filled: bool) -> Domain:
    """Every pair of first elements with one to three operations on few ranks."""
    return domain(
        f"2 <= P <= {ranks}, M <= {chunks}, B <= {most}, 1 to 3 operations each, {text}",
        p=range(2, ranks + 1),
        m=range(1, most + 1),
        v=range(1, chunks + 1),
        e="range(1, m + 1)",
        d="range(1, m + 1)",
        R="(1,) if e == m else (2, 3)",
        S="(1,) if d == m else (2, 3)",
        where=lambda at: _has_parts(at) and (is_filled(at) or not filled),
    )


FILLED = _few_ranks("filled", 3, 3, 7, filled=True)
ANY = _few_ranks("any elements", 3, 3, 4, filled=False)

CLAIMS: tuple[PaperClaim, ...] = (
    stated(
        "pipemesh.alg1.ends",
        "ours, for PipeMesh Algorithm 1: a criterion",
        "For filled sequences the printed program ends exactly where (M-1) e_1 + 2(P-1) <= M B, "
        "and M = 1 or e_1 is at least q, the most microbatches in the queue when a dequeue "
        "begins.",
        "1 where it ends",
        runs_literally,
        "==",
        is_free,
        FILLED,
    ),
    stated(
        "pipemesh.alg1.ends-only",
        "ours, for PipeMesh Algorithm 1: a criterion",
        "Whatever the elements, the printed program ends nowhere else.",
        "1 where it ends",
        runs_literally,
        "<=",
        is_free,
        ANY,
    ),
)
