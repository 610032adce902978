"""The link from claims to theorems: both ends exist, and no refuted claim is linked."""

from __future__ import annotations

from bubbleproof.papers.claims import ClaimVerdict, claims, decide
from bubbleproof.papers.claims.registry import THEOREMS
from bubbleproof.papers.theorems import theorems


def test_both_ends_exist() -> None:
    assert THEOREMS.keys() <= claims().keys()
    assert set(THEOREMS.values()) <= theorems().keys()


def test_linked_claims_hold_where_they_are_measured() -> None:
    known = claims()
    for name in THEOREMS:
        assert decide(known[name], limit=40).verdict is ClaimVerdict.HOLDS
