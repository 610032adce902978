"""PipeMesh's claims: refuted ones are mended, counterexamples recur, and mutants are refuted."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import chain, product

import pytest

from bubbleproof.costs.pipemesh_formulas import buffer
from bubbleproof.papers.claims import ClaimVerdict, Decision, decide, pipemesh_growth
from bubbleproof.papers.claims import pipemesh_schedules as on
from bubbleproof.papers.claims.pipemesh import CLAIMS
from bubbleproof.papers.claims.pipemesh_domains import FILLED
from bubbleproof.papers.claims.pipemesh_memory import BYTES
from bubbleproof.papers.claims.pipemesh_schedules import sequences
from bubbleproof.papers.claims.pipemesh_tables import SYSTEMS, TABLE, model
from bubbleproof.papers.claims.registry import THEOREMS
from bubbleproof.theory.families.pipemesh_order import buffer_size, elastic_program, literal_orders
from bubbleproof.theory.pipelines.timing import Deadlock

BY_ID = {claim.id: claim for claim in CLAIMS}
LIMIT = 40  # cases looked at of what holds
STEPS = {"pipemesh.tab4.parts": 3}  # GiB: what M_GPU holds besides the four parts is 2.1 to 2.6
NUMERIC = [claim.id for claim in CLAIMS if claim.missing is None]
MENDED = [claim.id for claim in CLAIMS if claim.corrected is not None]


@cache
def decided(name: str) -> Decision:
    return decide(BY_ID[name], limit=LIMIT)


@cache
def refuted(name: str) -> Decision:
    return decide(BY_ID[name])


def counterexample(name: str) -> str:
    found = refuted(f"pipemesh.{name}").counterexample
    assert found is not None, name
    return str(found)


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 40
    assert all(name.startswith("pipemesh.") for name in BY_ID)


@pytest.mark.parametrize("name", MENDED)
def test_a_claim_with_a_correction_is_refuted_and_the_correction_holds(name: str) -> None:
    claim = BY_ID[name]
    decision = refuted(name)
    assert decision.verdict is ClaimVerdict.REFUTED
    case = decision.counterexample
    assert case is not None
    assert claim.predicted is not None
    assert claim.measured is not None
    assert (claim.predicted(case.params), claim.measured(case.params)) == (
        case.predicted,
        case.measured,
    )
    assert decided(claim.corrected or "").verdict is ClaimVerdict.HOLDS


@pytest.mark.parametrize("name", [name for name in NUMERIC if name not in MENDED])
def test_what_needs_no_correction_is_not_refuted(name: str) -> None:
    assert decided(name).verdict is ClaimVerdict.HOLDS


def test_smallest_counterexamples_by_hand() -> None:
    # Three ranks, one chunk, B = 3: the first stage warms up with n_fwd = 2(P-1) = 4 forwards of 3.
    at = "p=3 m=3 v=1 e=3 d=3 R=1 S=1"
    assert counterexample("alg1.runs") == f"{at}: claimed 1, measured 0"
    # Two ranks, M = 1, B = 2: e_1 (M-1) + 2(P-1) + 1 = 3 activations of two.
    assert counterexample("sec4A.peak") == (
        "p=2 m=2 v=1 e=2 d=2 R=1 S=1 r=0: claimed 3, measured 2"
    )
    # Two ranks, M = B = 2: chunk 1 of rank 0 waits for both links of the ring, forwards and back.
    assert counterexample("sec4A.messages") == (
        "p=2 m=2 v=2 e=2 d=2 R=1 S=1 tF=2 tB=4 c=1: claimed 2, measured 6"
    )
    # (2/2 + 8/5) psi = 2.6 psi is more than 2 psi.
    assert counterexample("sec4A.more-chunks") == "D=2 M=5: claimed 1, measured 0"
    # P = M = B = 2: the gather of 1 hides behind 2 forwards, the reduction of 6 behind 4 ticks of
    # backwards: 1 + 6 + 0 + 2 = 9; the other way round 1 + 6 + (6 - 2) + 0 = 11.
    assert counterexample("eq2.windows") == (
        "p=2 m=2 v=2 e=2 d=2 R=1 S=1 C=1: claimed 11, measured 9"
    )


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
    assert on.consecutive(on.mesh(waits), waits) == 4 + 2 + 1


def test_a_claims_source_says_which_algorithm_is_meant() -> None:
    # How much communication grows is asked of the family alone.
    schedules = [claim for claim in CLAIMS if claim not in pipemesh_growth.CLAIMS]
    about = [claim for claim in schedules if {"e", "d"} <= set(claim.domain.names)]
    assert len(about) > 20
    for claim in about:
        assert "Algorithm 1" in claim.source, claim.id
    # The theorem is about the repaired order: no claim on the printed one rests on it.
    proved = {name for name, theorem in THEOREMS.items() if theorem == "pipemesh"}
    assert proved <= {
        c.id
        for c in about
        if c.source.endswith("of Algorithm 1 repaired")
        or "of Algorithm 1 repaired:" in c.source
        or "repaired, as" in c.source
    }


def test_a_layers_bytes_by_hand() -> None:
    # GPT-3: five outputs of width 1, two of 4, the last of 1 and two norms, 2 bytes each: 32; and
    # two dropout masks: 34. Llama2: 2 (1 + 1/8 + 1/8 + 1 + 1 + 4 * 8/3 + 1 + 2) = 203/6.
    assert {"GPT-3": 34, "Llama2": Fraction(203, 6), "Falcon": Fraction(53, 2)} == BYTES


def test_table_iv_has_its_rows() -> None:
    assert len(TABLE) == 16
    first, last = TABLE[0], TABLE[-1]
    assert SYSTEMS[0] == "PipeMesh"
    assert (first["M"], first["passes"]) == (Fraction(6), Fraction(72))
    assert first["mfu"] == Fraction("38.7")
    assert (SYSTEMS[3], model({"row": 15}), last["P"]) == ("Fold3D", "Falcon", Fraction(4))
    assert last["gpu"] == Fraction("29.1")


def test_the_buffer_is_that_of_the_family() -> None:
    # Two routes: the claim's walk through operations, the family's maximum over microbatches.
    for m, count, others in product(range(1, 9), (1, 2, 3, 4), (1, 2, 3, 4)):
        for e in range(1, m - count + 2) if count > 1 else (m,):
            for d in range(1, m - others + 2) if others > 1 else (m,):
                at = {"m": m, "e": e, "d": d, "R": count, "S": others}
                assert [len(sequence) for sequence in sequences(at)] == [count, others]
                assert buffer(*sequences(at)) == buffer_size(*sequences(at)), at
