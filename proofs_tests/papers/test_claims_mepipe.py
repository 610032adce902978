"""MEPipe's claims: every one is decided, refutations lead to a claim that holds, and tests bite."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import ClaimDecision, ClaimVerdict, decide, decide_reading
from bubbleproof.papers.claims.measured_pipelines import made, measures, peak_of_a
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.papers.registry import claims
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.solving import solve
from bubbleproof.theory.families import member
from bubbleproof.theory.families.svpp import most_forwards
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify import check
from proofs_tests.sized import sampled, sized

CLAIMS = claims("mepipe")
# Cases looked at here; most refuted claims fail in one of them.
LIMIT: int | None = sized(10, full=None)


@cache
def decided(name: str) -> ClaimDecision:
    return decide(CLAIMS[name], limit=LIMIT)


@pytest.mark.sweep
@pytest.mark.parametrize("claim", sampled([*CLAIMS.values()], every=4), ids=lambda claim: claim.id)
def test_a_refuted_claim_names_one_that_holds(claim: PaperClaim) -> None:
    decision = decided(claim.id)
    for finding in decision.findings:
        again = finding.counterexample
        if again is not None:
            measured = finding.reading.measured(again.params)
            assert measured == again.measured, "a counterexample measures alike"
    if decision.verdict is not ClaimVerdict.REFUTED:
        assert claim.corrected is None, f"{claim.id} needs no correction"
        return
    assert claim.corrected in CLAIMS, f"{claim.id} is refuted and names no other claim"
    assert decided(claim.corrected).verdict is ClaimVerdict.HOLDS


def test_what_of_the_paper_is_refuted_and_what_contradicts_itself() -> None:
    # All others hold, or an input is missing: the test above.
    asked = [claim for claim in CLAIMS.values() if claim.corrected or claim.against]
    verdicts = {claim.id: decide(claim, limit=4).verdict for claim in asked}
    found = {
        verdict: {name for name in verdicts if verdicts[name] is verdict}
        for verdict in (ClaimVerdict.REFUTED, ClaimVerdict.CONTRADICTS_ITSELF)
    }
    # Table 3's n/(vp) for n/p.
    assert found == {
        ClaimVerdict.REFUTED: {"mepipe.table3.vpp.memory-many"},
        ClaimVerdict.CONTRADICTS_ITSELF: set(),
    }


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("table3.dapple.bubble-many", lambda at: Fraction(at["p"], at["p"] + at["m"])),
        ("table3.vpp.memory-corrected", lambda at: 1 + Fraction(at["p"] - 1, at["p"] * at["v"])),
        ("table3.hanayo.memory-few", lambda _: 1),
        (
            "table3.svpp.bubble-few-reached",
            lambda at: Fraction(at["p"] - 1, at["p"] - 1 + at["m"] * at["v"] * at["s"]),
        ),
        ("table3.svpp.memory-few", lambda at: Fraction(at["m"], at["p"])),
    ],
)
def test_a_formula_that_is_almost_right_is_refuted(name: str, mutant: NumberOf) -> None:
    assert decided(f"mepipe.{name}").verdict is ClaimVerdict.HOLDS
    changed = replace(CLAIMS[f"mepipe.{name}"].reading(), predicted=mutant)
    assert not decide_reading(changed).holds


def test_table_3s_vpp_memory_lacks_a_factor_v() -> None:
    # p = n = v = 2: Table 3 says min(1 + 1/4, 2/4) = 1/2 A. Rank 0 runs its 4 forwards (2 samples
    # on 2 chunks) before it gets the first gradient: all of A.
    at = {"p": 2, "m": 2, "v": 2, "tF": 1, "tB": 1}
    reading = CLAIMS["mepipe.table3.vpp.memory-many"].reading()
    assert reading.values(at) == (Fraction(1, 2), Fraction(1))


@pytest.mark.parametrize(("p", "said", "least"), [(2, 15, 16), (3, 21, 22)])
def test_hanayos_first_counterexamples_are_no_fault_of_the_order(
    p: int, said: int, least: int
) -> None:
    # n=2, v=2, tF=1, tB=2. Table 3 says (nv + p-1)(tF + tB) = (4 + 1) * 3 at n = p = 2 and
    # (vp + n-1)(tF + tB) = (6 + 1) * 3 at p = 3; a checked bound shows that no order takes less
    # than a tick more (``test_hanayo`` derives 16 by hand).
    made = member("hanayo", p=p, m=2, v=2, tF=1, tB=2)
    result = solve(made.problem, starts=[("hanayo", made.schedule.program)])
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, least)
    assert said < least == measure(made.problem, made.schedule).makespan


@pytest.mark.parametrize(("p", "m", "v", "s"), [(3, 1, 2, 4), (3, 4, 2, 1), (5, 3, 2, 2)])
def test_svpps_bubble_is_there_where_the_printed_generator_misses_it(
    p: int, m: int, v: int, s: int
) -> None:
    # Table 3's makespan at tF = tB = 1, within Table 3's f: only the way to it is refuted.
    made = member("svpp", p=p, m=m, v=v, s=s, tF=1, tB=1)
    capped = made.problem.with_capacity(most_forwards(made.pipeline))
    result = solve(capped, starts=[("svpp", made.schedule.program)])
    idle = p - 1 + ((v - 1) * max(p - s * m, 0) if m < p else 0)
    assert result.status is Status.OPTIMAL
    assert result.lower_bound == 2 * (m * v * s + idle)
    printed = member("svpp-printed", p=p, m=m, v=v, s=s, tF=1, tB=1)
    assert measure(printed.problem, printed.schedule).makespan > result.lower_bound


def test_what_is_measured_is_a_checked_schedule() -> None:
    built = made("svpp", {"p": 3, "m": 4, "v": 2, "s": 2, "tF": 1, "tB": 1, "r": 1})
    assert check(built.problem, built.schedule).ok
    got = measures("svpp", {"p": 3, "m": 4, "v": 2, "s": 2, "tF": 1, "tB": 1})
    assert got == measure(built.problem, built.schedule)


def test_chunks_and_slices_count_only_where_a_family_has_them() -> None:
    # DAPPLE at p = 8 keeps A whatever v and s the case names for others.
    at = {"p": 8, "m": 8, "v": 2, "s": 4, "tF": 1, "tB": 1}
    assert peak_of_a("1f1b")(at) == 1
    assert peak_of_a("svpp")(at) == Fraction(2 * 8 + 4 - 1, 2 * 4 * 8)
