"""The field's claims: which readings hold, what rejects the others, and that tests bite."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import ClaimDecision, ClaimVerdict, decide, decide_reading
from bubbleproof.papers.claims.measured_pipelines import made, measures
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.papers.field.field_first import shapes
from bubbleproof.papers.registry import claims
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.solving import solve
from bubbleproof.verify import check
from proofs_tests.sized import sampled, sized

CLAIMS = claims("field")
LIMIT = sized(30, full=80)


@cache
def decided(name: str) -> ClaimDecision:
    return decide(CLAIMS[name], limit=LIMIT)


# What rejects a reading beside one that holds; all else holds. p, m, ... of the first case.
REJECTED = {
    # Two units, each with a gap of D-2 = 2 ticks more: 6 of 30 in place of 2 of 14.
    ("chimera.double", "units joined directly"): "p=4 m=8 tF=1 tB=2: claimed 1/7, measured 1/5",
}


@pytest.mark.parametrize("claim", sampled([*CLAIMS.values()], every=3), ids=lambda claim: claim.id)
def test_each_reading_holds_or_is_rejected_by_its_smallest_case(claim: PaperClaim) -> None:
    decision, name = decided(claim.id), claim.id.removeprefix("field.")
    assert claim.corrected is None
    assert decision.verdict is ClaimVerdict.HOLDS
    for finding in decision.findings:
        rejected = REJECTED.get((name, finding.reading.name), "None")
        assert str(finding.counterexample) == rejected, finding.reading.name


def test_what_is_rejected_is_there() -> None:
    for name, reading in REJECTED:
        assert CLAIMS[f"field.{name}"].reading(reading)


def _hops(at: dict[str, int]) -> int:
    return at["p"] // 2 - 1


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("gpipe.makespan", lambda at: Fraction((at["m"] + at["p"]) * (at["tF"] + at["tB"]))),
        ("1f1b.idle-ratio", lambda at: Fraction(at["p"] - 1, at["m"])),
        ("1f1b.idle-over-work", lambda at: Fraction(at["p"] - 1, at["m"] + at["p"] - 1)),
        ("1f1b.peak-of-rank", lambda at: Fraction(at["p"] - at["r"])),
        ("interleaved.bubble", lambda at: Fraction(at["p"] - 1, at["m"])),
        ("zb-h1.bubble", lambda at: Fraction((at["p"] - 1) * (at["tF"] + at["tI"] - 2 * at["tW"]))),
        ("zb-h2.bubble", lambda at: Fraction((at["p"] - 1) * (at["tF"] + at["tI"] - at["tW"]))),
        ("zb-h2.peak", lambda at: Fraction(2 * at["p"])),
        ("v-half.peak-rounded", lambda at: Fraction((at["p"] + 1) // 2, at["p"])),
        ("v-min.bubble", lambda at: Fraction(4 * at["p"] - 6)),
        ("chimera.bubble", lambda at: Fraction(at["p"] - 2, 2 * at["m"] + at["p"] - 1)),
        ("chimera.double-gaps", lambda at: Fraction(2 * (at["p"] - 2))),
        (
            "dualpipe.bubble-general",
            lambda at: Fraction(_hops(at) * (at["tF"] + 2 * at["tI"] - at["tW"])),
        ),
    ],
)
def test_a_formula_that_is_almost_right_is_refuted(name: str, mutant: NumberOf) -> None:
    assert decided(f"field.{name}").verdict is ClaimVerdict.HOLDS
    changed = replace(CLAIMS[f"field.{name}"].readings[0], predicted=mutant)
    assert not decide_reading(changed).holds


def test_with_few_microbatches_zb_vs_bubble_is_its_phases_alone() -> None:
    # p = m = 2, unit ticks: rank 0 works 12 ticks and rank 1 starts one later, so 13 is the least.
    # The phases, which are what the family runs, take a tick longer on fewer than 2p-1 = 3.
    at = {"p": 2, "m": 2, "tF": 1, "tI": 1, "tW": 1}
    member = made("zb-v", at)
    result = solve(member.problem, starts=[("zb-v", member.schedule.program)])
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, 13)
    assert measures("zb-v", at).makespan == 14


def test_zb_h2s_bubble_is_there_without_its_microbatches() -> None:
    # p = 2, m = 1: rank 0 runs F, waits for F and I of rank 1, and runs I and W: 2 idle, not 0.
    assert measures("zb-h2", {"p": 2, "m": 1, "tF": 1, "tI": 1, "tW": 1}).span_idle == 2


def test_domains_hold_odd_ranks_few_microbatches_and_remainders() -> None:
    found = shapes()
    for cases, most in ((found, 8), (found.wide, 16)):
        assert cases is not None
        points = cases.points
        assert {at["p"] for at in points} == set(range(2, most + 1))
        assert any(at["m"] < at["p"] and at["p"] % 2 for at in points)
        assert any(at["m"] > at["p"] > 5 and at["m"] % at["p"] for at in points)
        assert max(at["m"] for at in points) == 4 * most


@pytest.mark.parametrize("name", ["v-half", "dualpipe", "chimera"])
def test_what_is_measured_is_a_checked_schedule(name: str) -> None:
    member = made(name, {"p": 4, "m": 8, "tF": 1})
    assert check(member.problem, member.schedule).ok
