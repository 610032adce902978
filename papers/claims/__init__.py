"""The papers' claims as data; ``decide`` decides one, ``papers.registry`` lists them all.

``domain`` makes the cases, ``reading`` says what a sentence can mean, ``claim`` what a claim is and
how it is written down, ``decision`` what becomes of it. No particular paper is known here.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import (
    ClaimDecision,
    ClaimVerdict,
    Counterexample,
    ReadingFinding,
    decide,
)
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.claims.reading import Premise, Reading, Relation

__all__ = [
    "ClaimDecision",
    "ClaimVerdict",
    "Counterexample",
    "Domain",
    "PaperClaim",
    "Premise",
    "Reading",
    "ReadingFinding",
    "Relation",
    "decide",
]
