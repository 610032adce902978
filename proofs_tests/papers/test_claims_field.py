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
LIMIT = 80
USUAL = sized(30, full=LIMIT)  # enough but for these
LATE = ("field.dualpipe.bubble",)


@cache
def decided(name: str) -> ClaimDecision:
    return decide(CLAIMS[name], limit=LIMIT if name in LATE else USUAL)


# What rejects a reading beside one that holds; all else holds. p, m, ... of the first case.
REJECTED = {
    ("1f1b.peak", "just p, of fewer too"): "p=2 m=1 tF=1 tB=1: claimed 2, measured 1",
    # m < p: stage 3 of 4 waits for three forwards and runs one pair; three backwards follow.
    ("interleaved.bubble", "any m, by some order"): (
        "p=2 m=1 v=2 tF=1 tB=1: claimed 1/2, measured 1"
    ),
    # pv + p-1 = 5 of mv = 4.
    ("interleaved.peak", "of one group too"): "p=2 m=2 v=2 tF=1 tB=1: claimed 5, measured 4",
    ("bfs.bubble", "any m"): "p=2 m=1 v=2 tF=1 tB=1: claimed 1/2, measured 1",
    # Rank 0 waits for F and I of rank 1: 2 ticks that no W fills.
    ("zb-h1.bubble", "any m and any durations"): ("p=2 m=1 tF=1 tI=1 tW=1: claimed 1, measured 2"),
    ("zb-h2.bubble", "any m and any durations"): ("p=2 m=1 tF=1 tI=1 tW=1: claimed 0, measured 2"),
    ("zb-v.bubble", "any durations, the order for equal ticks"): (
        "p=2 m=3 tF=1 tI=2 tW=1: claimed 0, measured 2"
    ),
    # The phases on fewer than 2p-1 microbatches (by hand below).
    ("zb-v.bubble", "m >= p"): "p=2 m=2 tF=1 tI=1 tW=1: claimed 0, measured 2",
    ("v-half.peak", "on any number of ranks"): ("p=2 m=2 tF=1 tI=1 tW=1: claimed 1/2, measured 1"),
    ("v-half.bubble", "just that"): "p=2 m=3 tF=1 tI=1 tW=1: claimed 3, measured 1",
    # The authors' generator takes 34 ticks at p = m = 4, 10 more than a rank's work of 24.
    ("v-half.bubble", "at most, at tF = tI = tW and m >= p"): (
        "p=4 m=4 tF=1 tI=1 tW=1: claimed 9, measured 10"
    ),
    # 1F1B idles (p-1)(2 tF + 2 tI + 2 tW) = 8 chunk ticks.
    ("v-half.bubble", "at most, at any durations"): (
        "p=2 m=2 tF=1 tI=2 tW=1: claimed 4, measured 7"
    ),
    ("v-min.peak", "on any number of ranks"): "p=2 m=2 tF=1 tI=1 tW=1: claimed 1/3, measured 1",
    # The authors' generator takes 15 ticks at p = m = 2 and 19 at p = 2, m = 3 (V-Half).
    ("v-min.bubble", "just that"): "p=2 m=2 tF=1 tI=1 tW=1: claimed 4, measured 3",
    ("v-min.bubble", "at most, at any durations"): (
        "p=2 m=2 tF=1 tI=2 tW=1: claimed 16/3, measured 7"
    ),
    ("chimera.bubble", "some order, for any m and any durations"): (
        "p=2 m=1 tF=1 tB=1: claimed 0, measured 1/2"
    ),
    # Two units, each with a gap of D-2 = 2 ticks more: 6 of 30 in place of 2 of 14.
    ("chimera.double", "units joined directly"): "p=4 m=8 tF=1 tB=2: claimed 1/7, measured 1/5",
    # (p/2-1)(1 + 4) = 5; min(tF, tI - tF) = 1 less.
    ("dualpipe.bubble", "any durations"): "p=4 m=8 tF=1 tI=2 tW=0: claimed 5, measured 4",
    ("dualpipev.bubble", "any durations"): "p=2 m=4 tF=1 tI=2 tW=0: claimed 5, measured 4",
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
