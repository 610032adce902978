"""Every claim that holds fails one step beyond its relation, in a case of its small domain.

An audit finds the same in its own run (``Decision.surviving``) on the wide domains; here the cases
are looked at, smallest first, until each mutant is refuted.
"""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import Claim, claims

HOLDING = [c for c in claims().values() if c.missing is None and c.corrected is None]


def surviving(claim: Claim) -> frozenset[int]:
    """The mutants that no case of the small domain refutes."""
    left = claim.mutants
    for params in claim.domain.points:
        predicted, measured = claim.values(params)
        assert claim.accepts(predicted, measured), f"{claim.id} fails at {params}"
        left -= claim.refuted_mutants(predicted, measured)
        if not left:
            break
    return left


@pytest.mark.parametrize("claim", HOLDING, ids=lambda claim: claim.id)
def test_a_claim_is_refuted_one_step_beyond_or_says_why_not(claim: Claim) -> None:
    left = surviving(claim)
    if claim.slack is None:
        assert not left, f"{claim.id} is never attained; tighten it or say why (slack)"
    else:
        assert left == claim.mutants, f"{claim.id} is attained: its slack is none"
