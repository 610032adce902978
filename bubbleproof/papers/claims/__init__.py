"""The papers' claims as data; ``claims()`` lists them all by id, ``decide`` decides one.

``points`` makes domains, ``claim`` says what a claim is, ``standing`` what its measured side rests
on, ``shards`` cuts an audit up for many workers, ``registry`` names the papers' modules.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import (
    Claim,
    ClaimVerdict,
    Counterexample,
    Decision,
    Domain,
    Relation,
    Standing,
    decide,
    grid,
    listed,
)
from bubbleproof.papers.claims.registry import claims

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
    "grid",
    "listed",
]
