"""A schedule and a certificate: how near it is, and what refuses either."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.solvers import Result, solve
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, Verdict, check
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.candidates.certified_distance import CertifiedDistance, certified_distance
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.one_machine import OneMachine

PIPELINE = Pipeline(num_ranks=2, num_microbatches=3, unit="us")
PROBLEM = PIPELINE.problem()
ALLOWED = AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=2))


@pytest.fixture(scope="module")
def solved() -> Result:
    """1F0 starts at 1, then three times F and B on rank 1, and the last B of rank 0: 12."""
    return solve(PROBLEM)


def certificate_of(solved: Result) -> Certificate:
    assert isinstance(solved.certificate, OneMachine)
    return solved.certificate


def verdict_of(solved: Result) -> Verdict:
    assert solved.schedule is not None
    return check(PROBLEM, solved.schedule)


def distance(
    verdict: Verdict,
    proof: Certificate | Cases,
    pipeline: Pipeline | None = None,
    allowed: AllowedChoices | None = None,
) -> CertifiedDistance:
    return certified_distance(PROBLEM, pipeline, allowed, verdict, proof)


def sentences(found: CertifiedDistance) -> list[str]:
    assert found.decision.rule is Rule.CERTIFICATE
    return [violation.message for violation in found.decision.violations]


def test_a_schedule_that_meets_its_bound_is_optimal(solved: Result) -> None:
    found = distance(verdict_of(solved), certificate_of(solved))
    assert (found.value, found.gap, found.is_proved) == (12, 0, True)
    assert found.statement == "optimal for this shape: makespan 12 us, and no schedule has less"
    over = distance(verdict_of(solved), certificate_of(solved), PIPELINE, ALLOWED)
    assert over.statement.startswith("optimal over these choices: makespan 12 us")


def test_a_longer_schedule_is_told_its_distance(solved: Result) -> None:
    certificate = certificate_of(solved)
    gpipe = family("gpipe")(p=2, m=3)
    late = check(gpipe.problem, replace(gpipe.schedule, start=gpipe.schedule.start))
    assert late.measured is not None
    longer = replace(late.measured, makespan=15)
    found = distance(replace(late, measured=longer), certificate)
    assert found.gap == 3
    assert found.statement == (
        "within 3 us of optimal for this shape: makespan 15 us, and no schedule is below 12"
    )


def test_a_value_below_the_bound_refuses_it(solved: Result) -> None:
    verdict = verdict_of(solved)
    assert verdict.measured is not None
    less = replace(verdict, measured=replace(verdict.measured, makespan=11))
    found = distance(less, certificate_of(solved))
    assert sentences(found) == [
        "the schedule's makespan is 11, below the bound 12 that the certificate claims for all "
        "schedules"
    ]
    assert (found.gap, found.is_proved) == (None, False)
    assert found.statement == "makespan: nothing is proved about how good the schedule is"


def test_a_wrong_schedule_has_no_value(solved: Result) -> None:
    assert solved.schedule is not None
    early = check(PROBLEM, replace(solved.schedule, start=solved.schedule.start * 0))
    assert early.measured is not None
    found = distance(early, certificate_of(solved))
    assert found.value is None
    assert found.is_proved
    assert found.gap is None
    untimed = distance(Verdict(decisions=()), certificate_of(solved))
    assert untimed.value is None


def test_the_value_is_of_the_certificates_objective(solved: Result) -> None:
    idle = replace(certificate_of(solved), objective="span_idle", bound=0)
    verdict = verdict_of(solved)
    assert verdict.measured is not None
    assert distance(verdict, idle).value == verdict.measured.span_idle != 12


def test_a_certificate_that_shows_less_is_refused(solved: Result) -> None:
    more = replace(certificate_of(solved), bound=13)
    [why] = sentences(distance(Verdict(decisions=()), more))
    assert "13" in why
    assert sentences(distance(Verdict(decisions=()), more, PIPELINE, ALLOWED)) == [why]


def test_cases_are_about_choices_alone(solved: Result) -> None:
    cases = Cases(bound=12, proofs=(certificate_of(solved),))
    told = ["the schedule comes without the choices that the cases are about"]
    assert sentences(distance(verdict_of(solved), cases)) == told
    assert sentences(distance(verdict_of(solved), cases, PIPELINE)) == told
    assert sentences(distance(verdict_of(solved), cases, None, ALLOWED)) == told
    assert distance(verdict_of(solved), cases, PIPELINE, ALLOWED).is_proved
