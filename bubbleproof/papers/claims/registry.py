"""Every claim by its id, and which theorem implies it.

A paper's claims live in modules of this package with tuples ``CLAIMS``; to join, a module is added
to ``_PAPERS``. Where a formula of the field is usually quoted without its condition, the
unconditional form is a claim of its own and names the conditional one as its correction.

A theorem (``bubbleproof.papers.theorems``, known here by its id alone) implies a claim on its whole
domain: it gives the makespan and the peaks of a family for all sizes and durations; work and idle
time follow by counting. An audit proves the theorem anew before it says so.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.claims import (
    bpipe,
    field_bidirectional,
    field_few,
    field_first,
    field_zero_bubble,
    mepipe_configurations,
    mepipe_evaluation,
    mepipe_hanayo,
    mepipe_model,
    mepipe_one_less,
    mepipe_strategies,
    mepipe_svpp,
    mepipe_table3,
    mepipe_vpp,
    pipemesh,
    tpipe,
)
from bubbleproof.papers.claims.claim import Claim

_PAPERS = (
    bpipe,
    mepipe_table3, mepipe_svpp, mepipe_model, mepipe_evaluation, mepipe_strategies, mepipe_vpp,
    mepipe_hanayo, mepipe_one_less, mepipe_configurations,
    field_first, field_zero_bubble, field_bidirectional, field_few,
    pipemesh,
    tpipe,
)  # fmt: skip

_IMPLIED: dict[str, tuple[str, ...]] = {
    "gpipe": (
        "field.gpipe.makespan",
        "field.gpipe.idle-ratio",
        "field.gpipe.idle-over-work",
        "field.gpipe.peak",
    ),
    "1f1b": (
        "bpipe.eq1",
        "bpipe.mu",
        "bpipe.eq2",
        "bpipe.eq3",
        "bpipe.sec3.3.pair",
        "field.1f1b.makespan",
        "field.1f1b.idle-ratio",
        "field.1f1b.idle-over-work",
        "field.1f1b.peak-of-rank",
        "mepipe.table3.dapple.bubble-many",
        "mepipe.table3.dapple.bubble-few",
        "mepipe.table3.dapple.memory-many",
        "mepipe.table3.dapple.memory-few",
    ),
    "terapipe": (
        "mepipe.table3.terapipe.bubble-many",
        "mepipe.table3.terapipe.bubble-few",
        "mepipe.table3.terapipe.memory-many",
        "mepipe.table3.terapipe.memory-few",
    ),
    "bfs": ("field.bfs.bubble-filled",),
    "interleaved": (
        "bpipe.appA.mu",
        "field.interleaved.bubble-divided",
        "field.interleaved.peak-bounded",
        "mepipe.table3.vpp.bubble-many",
        "mepipe.table3.vpp.memory-corrected",
    ),
    "pipemesh": (
        "pipemesh.sec4A.bubble-repaired",
        "pipemesh.sec4A.bubble-halves",
        "pipemesh.sec4A.peak-repaired",
        "pipemesh.sec4A.peak-halves",
        "pipemesh.sec4B.recompute",
    ),
    "zb-h1": ("field.zb-h1.peak",),
}

THEOREMS: dict[str, str] = {
    claim: theorem for theorem, implied in _IMPLIED.items() for claim in implied
}


def claims(paper: str | None = None) -> dict[str, Claim]:
    """Every claim by its id, in the order of the papers; only those of one paper where named.

    Raises ``ValueError`` listing the papers when there is none of that name.
    """
    written = (claim for module in _PAPERS for claim in module.CLAIMS)
    found = [replace(claim, theorem=THEOREMS.get(claim.id)) for claim in written]
    known = list(dict.fromkeys(claim.paper for claim in found))
    if paper is not None and paper not in known:
        raise ValueError(f"no claims of {paper!r}; the papers are {' '.join(known)}")
    chosen = {claim.id: claim for claim in found if paper in (None, claim.paper)}
    if len({claim.id for claim in found}) < len(found):
        raise ValueError("two claims share an id: one of them would go undecided")
    return chosen
