"""PipeMesh's claims: which readings hold, what rejects the others, what contradicts what."""

from __future__ import annotations

from itertools import chain, product

import pytest

from bubbleproof.papers.claims import ClaimDecision, ClaimVerdict, PaperClaim
from bubbleproof.papers.claims.decision import decide_reading
from bubbleproof.papers.pipemesh import pipemesh_schedules as on
from bubbleproof.papers.pipemesh.pipemesh_claims import CLAIMS
from bubbleproof.papers.pipemesh.pipemesh_domains import FILLED
from bubbleproof.papers.pipemesh.pipemesh_formulas import buffer
from bubbleproof.papers.pipemesh.pipemesh_schedules import sequences
from bubbleproof.papers.registry import THEOREMS
from bubbleproof.theory.families.pipemesh_order import buffer_size, elastic_program, literal_orders
from bubbleproof.theory.pipelines.timing import Deadlock
from proofs_tests.sized import sampled, sized

BY_ID = {claim.id: claim for claim in CLAIMS}
READ = sampled([*CLAIMS], every=2)
LIMIT = sized(10, full=40)  # cases looked at of a reading that holds
# Where every reading fails, what the first does.
REFUTED = {
    # B = 2P, two chunks: a dequeue of 4 needs four in the queue, and an enqueue brings two.
    "alg1.runs": "p=2 m=4 v=2 e=2 d=4 R=2 S=1: claimed 1, measured 0",
    "alg1.planned": "p=2 m=6 v=2 q=3 C=7: claimed 1, measured 0",
    "sec3B.requirement": "p=2 m=3 v=2 e=2 d=3 R=2 S=1: claimed 4, measured 3",
}
# Where two places of the paper exclude each other, and what either gives there.
CONTRADICTED = {
    # P = M = B = 2: the gather of 1 hides behind 2 forwards, the reduction of 6 behind 4 ticks of
    # backwards: 1 + 6 + 0 + 2 = 9; the other way round 1 + 6 + (6 - 2) + 0 = 11.
    "eq2.windows": "p=2 m=2 v=2 e=2 d=2 R=1 S=1 C=1: claimed 11, measured 9",
}
# Readings that fail beside one that holds.
REJECTED = {
    ("eq3", "at any C_DP"): "p=2 m=4 v=1 e=2 d=2 R=2 S=2 C=7: claimed 17, measured 15",
}


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 20
    assert all(name.startswith("pipemesh.") for name in BY_ID)


def decided(claim: PaperClaim, limit: int | None) -> ClaimDecision:
    """Readings that are rejected as far as what rejects them, the others to the limit."""
    fails = {reading for name, reading in REJECTED if f"pipemesh.{name}" == claim.id}
    findings = (
        decide_reading(each, limit=None if each.name in fails else limit) for each in claim.readings
    )
    return ClaimDecision(claim=claim, findings=tuple(findings))


@pytest.mark.parametrize("claim", READ, ids=lambda claim: claim.id)
def test_each_reading_holds_or_is_rejected_by_its_smallest_case(claim: PaperClaim) -> None:
    name = claim.id.removeprefix("pipemesh.")
    if name in CONTRADICTED or name in REFUTED:
        decision, is_of_two = decided(claim, None), name in CONTRADICTED
        assert decision.verdict is (
            ClaimVerdict.CONTRADICTS_ITSELF if is_of_two else ClaimVerdict.REFUTED
        )
        assert str(decision.counterexample) == {**REFUTED, **CONTRADICTED}[name]
        assert (claim.corrected is None) == is_of_two
        return
    decision = decided(claim, LIMIT)
    assert claim.corrected is None
    assert decision.verdict is ClaimVerdict.HOLDS
    for finding in decision.findings:
        rejected = REJECTED.get((name, finding.reading.name), "None")
        assert str(finding.counterexample) == rejected, finding.reading.name


def test_what_is_refuted_rejected_and_contradicted_is_there() -> None:
    assert {f"pipemesh.{name}" for name in CONTRADICTED} == {c.id for c in CLAIMS if c.against}
    for name in REFUTED:
        corrected = BY_ID[f"pipemesh.{name}"].corrected
        assert corrected is not None
        assert corrected.removeprefix("pipemesh.") not in {*REFUTED, *CONTRADICTED}
        assert BY_ID[corrected].readings
    for name, reading in REJECTED:
        assert BY_ID[f"pipemesh.{name}"].reading(reading)


def test_what_ends_as_printed_is_the_repaired_order_and_the_rest_does_not_end() -> None:
    ends = {True: 0, False: 0}
    for at in FILLED.points:
        e, d = on.sequences(at)
        does = on.ends_as_printed(at)
        assert does == bool(on.runs_literally(at)), at
        ends[does] += 1
        if does:
            assert on.printed(at) == on.measured(at), at
            first = elastic_program(on.mesh(at).pipeline, (e, d))
            orders = literal_orders(at["p"], at["v"], e, d)
            assert [str(action) for action in first.actions] == [*chain(*orders)], at
    assert min(ends.values()) > 20
    # e = (2, 2), d = (4), M = 2: the first dequeue asks for 4 microbatches, q = 4 > e_1 = 2.
    waits = {"p": 2, "m": 4, "v": 2, "e": 2, "d": 4, "R": 2, "S": 1, "r": 0}
    with pytest.raises(Deadlock):
        on.printed(waits)
    assert on.peak_on(waits) == on.expected_forwards(waits) == 4 + 2 + 1


def test_a_claims_source_says_which_algorithm_is_meant() -> None:
    about = [
        claim
        for claim in CLAIMS
        if any({"e", "d"} <= set(reading.domain.names) for reading in claim.readings)
    ]
    assert len(about) > 15
    for claim in about:
        assert "Algorithm 1" in claim.source, claim.id
    # The theorem is about the repaired order: no claim on the printed one rests on it.
    proved = {name for name, theorem in THEOREMS.items() if theorem == "pipemesh"}
    assert proved <= {c.id for c in about if "of Algorithm 1 repaired" in c.source}


def test_the_buffer_is_that_of_the_family() -> None:
    # Two routes: the claim's walk through operations, the family's maximum over microbatches.
    for m, count, others in product(range(1, 9), (1, 2, 3, 4), (1, 2, 3, 4)):
        for e in range(1, m - count + 2) if count > 1 else (m,):
            for d in range(1, m - others + 2) if others > 1 else (m,):
                at = {"m": m, "e": e, "d": d, "R": count, "S": others}
                assert [len(sequence) for sequence in sequences(at)] == [count, others]
                assert buffer(*sequences(at)) == buffer_size(*sequences(at)), at
