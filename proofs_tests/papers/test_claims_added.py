"""The claims of VPP, Hanayo's durations, counts, placements, deadlocks and tables: all decided.

Each refuted claim names one that holds, and no claim that holds would hold a unit further on,
unless it says why (``slack``). Second routes to the values are in the files beside this one.
"""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import (
    ClaimVerdict,
    bpipe,
    bpipe_placement,
    claims,
    decide,
    field_few,
    mepipe_configurations,
    mepipe_hanayo,
    mepipe_one_less,
    mepipe_strategies,
    mepipe_vpp,
    pipemesh_deadlock,
    pipemesh_growth,
    pipemesh_tables,
    tpipe_offload,
)
from bubbleproof.papers.claims.claim import Claim

ALL = claims()
ADDED = [
    *(
        claim
        for module in (
            bpipe_placement, field_few, mepipe_configurations, mepipe_hanayo, mepipe_one_less,
            mepipe_strategies, mepipe_vpp, pipemesh_deadlock, pipemesh_growth,
        )
        for claim in module.CLAIMS
    ),
    *bpipe.COUNTS,
    *pipemesh_tables.BATCHES,
    *tpipe_offload.COMPARISONS,
]  # fmt: skip
ADDED_IDS = {claim.id for claim in ADDED}
LIMIT = 16  # cases looked at here, the smallest; each refuted claim fails in one of them
REFUTED = {
    "bpipe.sec3.5.one-node",
    "mepipe.section-7.2.bubble",
    "mepipe.section-7.4.smallest",
    "mepipe.table3.vpp.few",
    "mepipe.table8.column",
    "pipemesh.sec4A.sum",
    "pipemesh.sec4A.sum-divided",
    "pipemesh.sec4A.sum-most",
    "pipemesh.sec6.accumulation",
    "pipemesh.sec6.batch",
    "pipemesh.sec6A.two-batch",
}


@pytest.mark.parametrize("claim", ADDED, ids=lambda claim: claim.id)
def test_every_claim_is_decided_as_its_statement_needs(claim: Claim) -> None:
    assert ALL[claim.id].statement == claim.statement
    decision = decide(claim, limit=LIMIT)
    assert (decision.verdict is ClaimVerdict.REFUTED) == (claim.id in REFUTED)
    assert (claim.corrected is not None) == (claim.id in REFUTED)
    assert (decision.verdict is ClaimVerdict.NOT_REPRODUCIBLE) == (claim.missing is not None)
    if decision.verdict is ClaimVerdict.HOLDS:
        assert bool(decision.surviving) == (claim.slack is not None)


@pytest.mark.parametrize("name", sorted(REFUTED))
def test_what_stands_in_a_refuted_claims_place_holds_where_it_fails(name: str) -> None:
    claim = ALL[name]
    assert claim.corrected is not None
    better = ALL[claim.corrected]
    assert better.id not in REFUTED
    assert better.missing is None
    assert better in ADDED


@pytest.mark.parametrize(
    "claim", [claim for claim in ADDED if claim.wide is not None], ids=lambda claim: claim.id
)
def test_an_audit_looks_at_all_small_cases_and_at_16_ranks(claim: Claim) -> None:
    assert claim.wide is not None
    small, wide = claim.domain, claim.wide
    assert small.names == wide.names
    assert {tuple(row) for row in small.table.tolist()} <= {
        tuple(row) for row in wide.table.tolist()
    }
    ranks = set(wide.table[:, wide.names.index("p")].tolist())
    assert max(ranks) == 16
    assert {5, 7, 11} <= ranks
