"""The claims of Hanayo's durations, f, counts, placements, deadlocks and tables: all decided.

Each refuted claim names one that holds, and no claim that holds would hold a unit further on,
unless it says why (``slack``). Second routes to the values are in the files beside this one.
"""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import ClaimVerdict, decide
from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.registry import claims
from proofs_tests.sized import sampled, sized

ALL = claims()
BEGIN = (
    *("bpipe.alg1.count", "bpipe.sec3.5.one-node", "field.few", "field.bfs.makespan-few"),
    *("field.interleaved.makespan-few", "mepipe.table3.hanayo.durations", "mepipe.table2"),
)
ADDED = [claim for name, claim in ALL.items() if name.startswith(BEGIN)]
# PipeMesh's are decided in ``test_claims_pipemesh``; their ranges are their own, too.
_OF_PLANNER = {"pipemesh.alg1.planned", "pipemesh.alg1.planned-ships", "pipemesh.sec6A.ends"}
ADDED_IDS = {claim.id for claim in ADDED} | _OF_PLANNER
LIMIT = sized(
    8, full=16
)  # cases looked at here, the smallest; each refuted claim fails in one of them
REFUTED: set[str] = set()


@pytest.mark.parametrize("claim", sampled(ADDED, every=2), ids=lambda claim: claim.id)
def test_every_claim_is_decided_as_its_statement_needs(claim: PaperClaim) -> None:
    assert ALL[claim.id].statement == claim.statement
    decision = decide(claim, limit=LIMIT)
    assert (decision.verdict is ClaimVerdict.REFUTED) == (claim.id in REFUTED)
    assert (claim.corrected is not None) == (claim.id in REFUTED)
    for finding in decision.findings:
        if finding.holds:
            assert bool(finding.surviving) == (finding.reading.slack is not None)


@pytest.mark.parametrize("name", sorted(REFUTED))
def test_what_stands_in_a_refuted_claims_place_holds_where_it_fails(name: str) -> None:
    claim = ALL[name]
    assert claim.corrected is not None
    better = ALL[claim.corrected]
    assert better.id not in REFUTED
    assert better in ADDED


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(reading, id=f"{claim.id}-{reading.name}")
        for claim in ADDED
        for reading in claim.readings
        if reading.wide is not None
    ],
)
def test_an_audit_looks_at_all_small_cases_and_at_16_ranks(reading: Reading) -> None:
    assert reading.wide is not None
    small, wide = reading.domain, reading.wide
    assert small.names == wide.names
    assert {tuple(row) for row in small.table.tolist()} <= {
        tuple(row) for row in wide.table.tolist()
    }
    ranks = set(wide.table[:, wide.names.index("p")].tolist())
    assert max(ranks) == 16
    assert {5, 7, 11} <= ranks
