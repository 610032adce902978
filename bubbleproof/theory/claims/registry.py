"""Every claim by its id.

A paper's claims live in a module (or a few) of this package with a tuple ``CLAIMS``; to join, a
module is added to ``_PAPERS``.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.theory.claims import bpipe, field, mepipe, pipemesh, tpipe
from bubbleproof.theory.claims.claim import Claim
from bubbleproof.theory.claims.proved import THEOREMS

_PAPERS: tuple[tuple[Claim, ...], ...] = (
    bpipe.CLAIMS,
    mepipe.CLAIMS,
    field.CLAIMS,
    pipemesh.CLAIMS,
    tpipe.CLAIMS,
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
    assert len({claim.id for claim in found}) == len(found), "two claims share an id"
    return chosen
