"""The papers' claims as data; ``claims()`` lists them all by id, ``decide`` decides one.

``domain`` makes the cases, ``claim`` says what a claim is and how it is written down, ``standing``
what its measured side rests on, ``registry`` names the papers' modules.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import (
    Claim,
    ClaimVerdict,
    Counterexample,
    Decision,
    Relation,
    decide,
)
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.claims.registry import claims
from bubbleproof.papers.claims.standing import Standing

__all__ = [
    "Claim",
    "ClaimVerdict",
    "Counterexample",
    "Decision",
    "Domain",
    "Relation",
    "Standing",
    "claims",
    "decide",
]
