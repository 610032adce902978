"""T-Pipe's claims: refuted ones are mended, counterexamples recur, and mutants are refuted."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from bubbleproof.costs.tpipe_formulas import least_delay
from bubbleproof.papers.claims import ClaimVerdict, Decision, decide
from bubbleproof.papers.claims.tpipe import CLAIMS
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.measures import measure

BY_ID = {claim.id: claim for claim in CLAIMS}
LIMIT = 40  # cases looked at of what holds
NUMERIC = [claim.id for claim in CLAIMS if claim.missing is None]
MENDED = [claim.id for claim in CLAIMS if claim.corrected is not None]


@cache
def decided(name: str) -> Decision:
    return decide(BY_ID[name], limit=LIMIT)


@cache
def refuted(name: str) -> Decision:
    return decide(BY_ID[name])


def counterexample(name: str) -> str:
    found = refuted(f"tpipe.{name}").counterexample
    assert found is not None, name
    return str(found)


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 40
    assert all(name.startswith("tpipe.") for name in BY_ID)


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


def test_the_whole_range_of_the_central_claims() -> None:
    for name in ("appA.total", "appA.ratio", "appA.joint-exact", "appC.time-bound"):
        decision = decide(BY_ID[f"tpipe.{name}"])
        assert decision.verdict is ClaimVerdict.HOLDS
        assert decision.is_complete


def test_smallest_counterexamples_by_hand() -> None:
    # p = 10: z = 5, x = 2, so 3 + 12 - 10 - (5 - 2 - 1) = 3 >= 0 without any delay.
    assert counterexample("appB.one") == "p=10 m=7: claimed 1, measured 0"
    # p = 27: z = 13, x = 4, so 3 + 24 - 27 - (13 - 4 - 1) + 7k = 7k - 8: k = 2.
    assert counterexample("sec4.2.sufficient") == "p=27 m=13: claimed 1, measured 2"
    # Stages 0 1 0 1 on 2 ranks: 3 hops each way and microbatch, where 1F1B has 1 and T-Pipe is
    # said to have 2: 4 * 2 * 2 = 16 claimed, 4 * 2 * 3 = 24 there.
    assert counterexample("appA.rounds") == "p=2 m=4: claimed 16, measured 24"
    # 1/3 of T-Pipe's 3 * 6 units is idle, 1/5 of interleaved 1F1B's 12 + 3.
    assert counterexample("sec4.1.double") == "p=2 m=2: claimed 2/5, measured 1/3"
    # 6p + 7(m-1) is 25 at p = 3, m = 2: a recomputation fills a bubble and saves one.
    assert counterexample("appC.time") == "p=3 m=2: claimed 25, measured 24"


def test_measurements_are_those_of_the_families() -> None:
    for p, m in ((1, 3), (4, 12), (7, 21)):
        params = make_parameters({"p": p, "m": m})
        plain, recomputed = TPipe().member(params), TRecomp().member(params)
        got = measure(plain.problem, plain.schedule)
        assert value("appA.joint", p=p, m=m) == max(got.peak_activations)
        assert value("appA.ratio", p=p, m=m) == got.idle_ratio
        got = measure(recomputed.problem, recomputed.schedule)
        assert value("appC.total", p=p, m=m) == max(got.peak_activations)


def value(name: str, **at: int) -> Fraction:
    measured = BY_ID[f"tpipe.{name}"].measured
    assert measured is not None
    return Fraction(measured(at))


def test_the_least_delay_is_where_its_constraint_turns_by_hand() -> None:
    # 3 + 6x - p - (z - x - 1) + 7k: p = 7, x = 1, z = 3: 1; p = 8, x = 1, z = 4: -1.
    assert [least_delay(p) for p in (7, 8)] == [0, 1]
