"""The field's claims: every one is decided, refutations lead to a claim that holds, tests bite."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from bubbleproof.papers.claims import claims
from bubbleproof.papers.claims.claim import Claim, ClaimVerdict, Decision, Value, decide
from bubbleproof.papers.claims.field_first import SOME_RANKS, is_looked_at, shapes
from bubbleproof.papers.claims.measured_pipelines import made, measures
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.solve import solve
from bubbleproof.theory.families.zb_v import phase_order
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check

CLAIMS = claims("field")
LIMIT = 80  # cases looked at here; the smallest counterexample of each refuted claim is among them


@cache
def decided(name: str) -> Decision:
    return decide(CLAIMS[name], limit=LIMIT)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_refuted_claim_names_one_that_holds(claim: Claim) -> None:
    decision = decided(claim.id)
    if decision.counterexample is None:
        assert claim.corrected is None, f"{claim.id} needs no correction"
        return
    again = decision.counterexample
    assert claim.measured is not None
    assert claim.measured(again.params) == again.measured, "a counterexample can be measured again"
    assert claim.corrected in CLAIMS, f"{claim.id} is refuted and names no other claim"
    assert decided(claim.corrected).verdict is ClaimVerdict.HOLDS


def _hops(at: dict[str, int]) -> int:
    return at["p"] // 2 - 1


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("gpipe.makespan", lambda at: Fraction((at["m"] + at["p"]) * (at["tF"] + at["tB"]))),
        ("1f1b.idle-ratio", lambda at: Fraction(at["p"] - 1, at["m"])),
        ("1f1b.idle-over-work", lambda at: Fraction(at["p"] - 1, at["m"] + at["p"] - 1)),
        ("1f1b.peak-of-rank", lambda at: Fraction(at["p"] - at["r"])),
        ("interleaved.bubble-divided", lambda at: Fraction(at["p"] - 1, at["m"])),
        ("zb-h1.bubble-conditions",
         lambda at: Fraction((at["p"] - 1) * (at["tF"] + at["tI"] - 2 * at["tW"]))),
        ("zb-h2.bubble-conditions",
         lambda at: Fraction((at["p"] - 1) * (at["tF"] + at["tI"] - at["tW"]))),
        ("zb-h2.peak", lambda at: Fraction(2 * at["p"])),
        ("v-half.peak-rounded", lambda at: Fraction((at["p"] + 1) // 2, at["p"])),
        ("v-min.bubble-at-most", lambda at: Fraction(4 * at["p"] - 6)),
        ("chimera.bubble-units",
         lambda at: Fraction(at["p"] - 2, 2 * at["m"] + at["p"] - 1)),
        ("chimera.double-gaps", lambda at: Fraction(2 * (at["p"] - 2))),
        ("dualpipe.bubble-general",
         lambda at: Fraction(_hops(at) * (at["tF"] + 2 * at["tI"] - at["tW"]))),
    ],
)  # fmt: skip
def test_a_formula_that_is_almost_right_is_refuted(name: str, mutant: Value) -> None:
    assert decided(f"field.{name}").verdict is ClaimVerdict.HOLDS
    changed = replace(CLAIMS[f"field.{name}"], predicted=mutant)
    assert decide(changed).verdict is ClaimVerdict.REFUTED


def test_with_few_microbatches_zb_vs_bubble_is_its_phases_alone() -> None:
    # p = m = 2, unit ticks: rank 0 works 12 ticks and rank 1 starts one later, so 13 is the least.
    # The phases take longer on fewer than 2p-1 microbatches; the family finds 13.
    at = {"p": 2, "m": 2, "tF": 1, "tI": 1, "tW": 1}
    member = made("zb-v", at)
    result = solve(member.problem, starts=[("zb-v", member.schedule.program)])
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, 13)
    assert measures("zb-v", at).makespan == 13
    phases = left_shift(member.problem, phase_order(2, 2))
    assert measure(member.problem, phases).makespan > 13


def test_zb_h2s_bubble_is_there_without_its_microbatches() -> None:
    # p = 2, m = 1: rank 0 runs F, waits for F and I of rank 1, and runs I and W: 2 idle, not 0.
    assert measures("zb-h2", {"p": 2, "m": 1, "tF": 1, "tI": 1, "tW": 1}).span_idle == 2


def test_domains_hold_odd_ranks_few_microbatches_and_remainders() -> None:
    points = shapes().points
    assert {at["p"] for at in points} == set(SOME_RANKS)
    assert any(at["m"] < at["p"] and at["p"] % 2 for at in points)
    assert any(at["m"] > at["p"] > 5 and at["m"] % at["p"] for at in points)
    assert all(is_looked_at(at["p"], at["m"]) for at in points)
    assert not is_looked_at(8, 12)
    assert max(at["m"] for at in points) == 4 * 16


@pytest.mark.parametrize("name", ["v-half", "dualpipe", "chimera"])
def test_what_is_measured_is_a_checked_schedule(name: str) -> None:
    member = made(name, {"p": 4, "m": 8, "tF": 1})
    assert check(member.problem, member.schedule).ok
