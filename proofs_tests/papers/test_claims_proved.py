"""The link from claims to theorems: both ends exist, and no refuted claim is linked."""

from __future__ import annotations

from bubbleproof.papers.claims import ClaimVerdict, decide
from bubbleproof.papers.registry import THEOREMS, claims
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.sized import sized

LIMIT = sized(12, full=40)  # cases looked at of each claim


def test_both_ends_exist() -> None:
    known = claims()
    assert THEOREMS.keys() <= known.keys()
    assert {*THEOREMS.values()} <= theorems().keys()


def test_linked_claims_hold_where_they_are_measured() -> None:
    known = claims()
    for name in THEOREMS:
        assert decide(known[name], limit=LIMIT).verdict is ClaimVerdict.HOLDS
