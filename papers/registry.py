"""Every claim by its id, and which theorem implies it.

A paper's claims live in modules of its folder with tuples ``CLAIMS``; to join, a module is added to
``_PAPERS``. Theorems join in ``theorems.theorem_library``, planners in ``planning.planner_list``.
Where a formula of the field is usually quoted without its condition, the unconditional form is a
contrast beside the reading that has it.

A theorem (``bubbleproof.papers.theorems``, known here by its id alone) implies a claim on its whole
domain: it gives the makespan and the peaks of a family for all sizes and durations; work and idle
time follow by counting. An audit proves the theorem anew before it says so.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.bpipe import bpipe_claims
from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.field import (
    field_bidirectional,
    field_first,
    field_zero_bubble,
    vocabulary,
)
from bubbleproof.papers.mepipe import mepipe_svpp, mepipe_table3
from bubbleproof.papers.pipemesh import pipemesh_claims
from bubbleproof.papers.tpipe import tpipe_claims

_PAPERS = (
    bpipe_claims,
    mepipe_table3,
    mepipe_svpp,
    field_first,
    field_zero_bubble,
    field_bidirectional,
    vocabulary,
    pipemesh_claims,
    tpipe_claims,
)

# (theorem, what the ids of the claims begin with, how they end)
_IMPLIED = (
    ("gpipe", "field.gpipe", "makespan idle-ratio idle-over-work peak"),
    ("1f1b", "bpipe", "eq1 mu"),
    ("bpipe-printed", "bpipe", "alg1.printed"),
    ("1f1b", "field.1f1b", "makespan idle-ratio idle-over-work peak-of-rank"),
    ("1f1b", "mepipe.table3.dapple", "bubble-many bubble-few memory-many memory-few"),
    ("terapipe", "mepipe.table3.terapipe", "bubble-many bubble-few memory-many memory-few"),
    ("interleaved", "bpipe", "appA.mu"),
    ("interleaved", "field.interleaved", "bubble peak"),
    ("bfs", "field.bfs", "bubble"),
    ("interleaved", "mepipe.table3.vpp", "bubble-many memory-corrected"),
    ("pipemesh", "pipemesh.sec4A", "bubble-repaired peak-repaired"),
    ("zb-h1", "field.zb-h1", "peak"),
)
THEOREMS = {f"{begin}.{end}": theorem for theorem, begin, ends in _IMPLIED for end in ends.split()}


def claims(paper: str | None = None) -> dict[str, PaperClaim]:
    """Every claim by its id, in the order of the papers; only those of one paper where named.

    Raises ``ValueError`` listing the papers when there is none of that name.
    """
    written = (claim for module in _PAPERS for claim in module.CLAIMS)
    found = [_with_theorems(claim) for claim in written]
    known = list(dict.fromkeys(claim.paper for claim in found))
    if paper is not None and paper not in known:
        raise ValueError(f"no claims of {paper!r}; the papers are {' '.join(known)}")
    chosen = {claim.id: claim for claim in found if paper in (None, claim.paper)}
    if len({claim.id for claim in found}) < len(found):
        raise ValueError("two claims share an id: one of them would go undecided")
    return chosen


def _with_theorems(claim: PaperClaim) -> PaperClaim:
    theorem = THEOREMS.get(claim.id)
    return replace(claim, readings=tuple(replace(r, theorem=theorem) for r in claim.readings))
