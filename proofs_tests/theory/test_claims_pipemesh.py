"""PipeMesh's claims: refuted ones are mended, counterexamples recur, and mutants are refuted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from bubbleproof.theory.claims import Claim, Relation, Standing, decide
from bubbleproof.theory.claims.pipemesh import CLAIMS, buffer
from bubbleproof.theory.claims.pipemesh_memory import BYTES
from bubbleproof.theory.claims.pipemesh_schedules import sequences
from bubbleproof.theory.claims.pipemesh_table4 import TABLE
from bubbleproof.theory.families.pipemesh_order import buffer_size

BY_ID = {claim.id: claim for claim in CLAIMS}
LIMIT = 40
STEPS = {"pipemesh.tab4.parts": 3}  # GiB: what M_GPU holds besides the four parts is 2.1 to 2.6
NUMERIC = [claim.id for claim in CLAIMS if claim.missing is None]
MENDED = [claim.id for claim in CLAIMS if claim.corrected is not None]


def counterexample(name: str) -> str:
    found = decide(BY_ID[f"pipemesh.{name}"]).counterexample
    assert found is not None, name
    return str(found)


def mutant(claim: Claim) -> Claim:
    """The claim with its prediction one step to the wrong side: 1, or a printed decimal."""
    predicted = claim.predicted
    assert predicted is not None
    step = Fraction(1, 10**claim.places) if claim.relation is Relation.ABOUT else Fraction(1)
    step *= 2 if claim.relation is Relation.ABOUT else STEPS.get(claim.id, 1)
    sign = 1 if claim.relation is Relation.AT_LEAST else -1
    return replace(claim, predicted=lambda at: predicted(at) + sign * step)


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 40
    assert all(name.startswith("pipemesh.") for name in BY_ID)


@pytest.mark.parametrize("name", MENDED)
def test_a_claim_with_a_correction_is_refuted_and_the_correction_holds(name: str) -> None:
    claim = BY_ID[name]
    decision = decide(claim)
    assert decision.standing is Standing.REFUTED
    case = decision.counterexample
    assert case is not None
    assert claim.predicted is not None
    assert claim.measured is not None
    assert (claim.predicted(case.params), claim.measured(case.params)) == (
        case.predicted,
        case.measured,
    )
    assert decide(BY_ID[claim.corrected or ""], limit=LIMIT).standing is Standing.HOLDS


@pytest.mark.parametrize("name", [name for name in NUMERIC if name not in MENDED])
def test_what_needs_no_correction_is_not_refuted(name: str) -> None:
    assert decide(BY_ID[name], limit=LIMIT).standing is Standing.HOLDS


@pytest.mark.parametrize("name", [name for name in NUMERIC if name not in MENDED])
def test_a_mutated_prediction_is_refuted(name: str) -> None:
    assert decide(mutant(BY_ID[name])).standing is Standing.REFUTED


def test_smallest_counterexamples_by_hand() -> None:
    # One rank, M = 2, e = (1, 1), d = (2): n_fwd = 1, so 0F0 1F0 1B0 0F1 1B1, which needs 1F1.
    at = "p=1 m=2 v=2 e=1 d=2 R=2 S=1"
    assert counterexample("alg1.runs") == f"{at}: claimed 1, measured 0"
    assert counterexample("sec4A.forwards") == f"{at} r=0: claimed 2, measured 3"
    # Two ranks, M = B = 2: chunk 1 of rank 0 waits for both links of the ring, forwards and back.
    assert counterexample("sec4A.messages") == (
        "p=2 m=2 v=2 e=2 d=2 R=1 S=1 tF=2 tB=4 c=1: claimed 2, measured 6"
    )
    # (2/2 + 8/5) psi = 2.6 psi is more than 2 psi.
    assert counterexample("sec4A.more-chunks") == "D=2 M=5: claimed 1, measured 0"
    # 1, M = 2, B = 1: gather 1 + 1, hidden behind 1 forward; reductions 6 + (6 - 2).
    assert counterexample("eq2.windows") == (
        "p=1 m=1 v=2 e=1 d=1 R=1 S=1 C=1: claimed 12, measured 11"
    )


def test_a_layers_bytes_by_hand() -> None:
    # GPT-3: five outputs of width 1, two of 4, the last of 1 and two norms, 2 bytes each: 32; and
    # two dropout masks: 34. Llama2: 2 (1 + 1/8 + 1/8 + 1 + 1 + 4 * 8/3 + 1 + 2) = 203/6.
    assert {"GPT-3": 34, "Llama2": Fraction(203, 6), "Falcon": Fraction(53, 2)} == BYTES


def test_table_iv_has_its_rows() -> None:
    assert len(TABLE) == 16
    first, last = TABLE[0], TABLE[-1]
    assert (first.system, first.M, first.passes, first.mfu) == (
        "PipeMesh", 6, 72, Fraction("38.7")
    )  # fmt: skip
    assert (last.system, last.model, last.P, last.gpu) == (
        "Fold3D", "Falcon", 4, Fraction("29.1")
    )  # fmt: skip


def test_the_buffer_is_that_of_the_family() -> None:
    # Two routes: the claim's walk through operations, the family's maximum over microbatches.
    for m, count, others in product(range(1, 9), (1, 2, 3, 4), (1, 2, 3, 4)):
        for e in range(1, m - count + 2) if count > 1 else (m,):
            for d in range(1, m - others + 2) if others > 1 else (m,):
                at = {"m": m, "e": e, "d": d, "R": count, "S": others}
                assert [len(sequence) for sequence in sequences(at)] == [count, others]
                assert buffer(at) == buffer_size(*sequences(at)), at
