"""Every claim by its id.

A paper's claims live in a module (or a few) of this package with a tuple ``CLAIMS``; to join, a
module is added to ``_PAPERS``.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.claims import (
    bpipe,
    bpipe_counts,
    bpipe_placement,
    field,
    field_few,
    mepipe,
    mepipe_configurations,
    mepipe_hanayo,
    mepipe_one_less,
    mepipe_strategies,
    mepipe_vpp,
    pipemesh,
    pipemesh_batch,
    pipemesh_deadlock,
    pipemesh_growth,
    tpipe,
    tpipe_frontier,
)
from bubbleproof.papers.claims.claim import Claim
from bubbleproof.papers.claims.proved import THEOREMS

_PAPERS: tuple[tuple[Claim, ...], ...] = (
    (*bpipe.CLAIMS, *bpipe_counts.CLAIMS, *bpipe_placement.CLAIMS),
    (
        *mepipe.CLAIMS,
        *mepipe_strategies.CLAIMS,
        *mepipe_vpp.CLAIMS,
        *mepipe_hanayo.CLAIMS,
        *mepipe_one_less.CLAIMS,
        *mepipe_configurations.CLAIMS,
    ),
    (*field.CLAIMS, *field_few.CLAIMS),
    (
        *pipemesh.CLAIMS,
        *pipemesh_deadlock.CLAIMS,
        *pipemesh_growth.CLAIMS,
        *pipemesh_batch.CLAIMS,
    ),
    (*tpipe.CLAIMS, *tpipe_frontier.CLAIMS),
)


def claims(paper: str | None = None) -> dict[str, Claim]:
    """Every claim by its id, in the order of the papers; only those of one paper where named.

    Raises ``ValueError`` listing the papers when there is none of that name.
    """
    found = [replace(claim, theorem=THEOREMS.get(claim.id)) for paper in _PAPERS for claim in paper]
    known = list(dict.fromkeys(claim.paper for claim in found))
    if paper is not None and paper not in known:
        raise ValueError(f"no claims of {paper!r}; the papers are {' '.join(known)}")
    chosen = {claim.id: claim for claim in found if paper in (None, claim.paper)}
    if len({claim.id for claim in found}) < len(found):
        raise ValueError("two claims share an id: one of them would go undecided")
    return chosen
