"""Every reading that holds fails one step beyond its relation, in a case of its small domain.

An audit finds the same in its own run (``Finding.surviving``) on the wide domains; here the cases
are looked at, smallest first, until each mutant is refuted, or the reading itself.
"""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import PaperClaim, Reading
from bubbleproof.papers.registry import claims
from proofs_tests.sized import sampled, sized

ALL = [claim for claim in claims().values() if claim.corrected is None]
READ = sampled(ALL, every=6)


def surviving(reading: Reading) -> frozenset[int] | None:
    """The mutants that no case of the small domain refutes; None where the reading fails."""
    left, points = reading.mutants, reading.domain.points
    for params in points if reading.slack is None else points[: sized(60, full=None)]:
        predicted, measured = reading.values(params)
        if not reading.accepts(predicted, measured):
            return None
        left -= reading.refuted_mutants(predicted, measured)
        if not left:
            break
    return left


@pytest.mark.parametrize("claim", READ, ids=lambda claim: claim.id)
def test_a_reading_is_refuted_one_step_beyond_or_says_why_not(claim: PaperClaim) -> None:
    left = {each: surviving(each) for each in claim.readings}
    if claim.against is None:
        held = [each.name for each, found in left.items() if found is not None]
        assert held, f"{claim.id} fails, and names no claim that stands in its place"
    for each, found in left.items():
        if found is not None and each.slack is None:
            assert not found, f"{each.name} is never attained; tighten it or say why (slack)"
        elif found is not None:
            assert found == each.mutants, f"{each.name} is attained: its slack is none"
