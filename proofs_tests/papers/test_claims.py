"""Deciding claims: order of counterexamples, relations, limits and what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bubbleproof.papers.claims import (
    ClaimVerdict,
    PaperClaim,
    Reading,
    Relation,
    decide,
)
from bubbleproof.papers.claims.domain import Domain, domain
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.papers.registry import claims
from proofs_tests.sized import sampled

SUM = Reading(
    name="as stated",
    support="a test",
    relation=Relation.EQUAL,
    domain=domain(
        "a, b in 1..4, a != b", where=lambda at: at["a"] != at["b"], a=range(1, 5), b=range(1, 5)
    ),
    predicted=lambda _: Fraction(5),
    measured=lambda at: Fraction(at["a"] + at["b"]),
)


def read(*readings: Reading) -> PaperClaim:
    """A claim with these readings."""
    return PaperClaim(
        id="test.sum",
        paper="test",
        source="a test",
        statement="a + b is 5",
        quantity="a sum",
        readings=readings,
    )


SUMS = read(SUM)


def changed(
    relation: Relation = Relation.EQUAL,
    predicted: NumberOf = SUM.predicted,
    measured: NumberOf = SUM.measured,
    places: int = 0,
    cases: Domain = SUM.domain,
) -> PaperClaim:
    """The claim in another reading alone."""
    return read(
        replace(
            SUM,
            relation=relation,
            predicted=predicted,
            measured=measured,
            places=places,
            domain=cases,
        )
    )


def test_the_smallest_counterexample_has_the_least_sum_and_then_the_least_first_value() -> None:
    # Sums 3 (1,2), (2,1), then 4 (1,3), (3,1), then 5, ...
    found = decide(SUMS).counterexample
    assert found is not None
    assert str(found) == "a=1 b=2: claimed 5, measured 3"
    at_least_4 = changed(Relation.AT_MOST, lambda _: Fraction(3))
    found = decide(at_least_4).counterexample
    assert found is not None
    assert dict(found.params) == {"a": 1, "b": 3}
    assert decide(at_least_4).checked == 3


def test_the_order_is_that_of_the_named_parameters() -> None:
    points = domain("all", a=(3, 1, 2), b=(2, 1)).points
    assert [(at["a"], at["b"]) for at in points] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]


@pytest.mark.parametrize(
    ("relation", "predicted", "places", "holds"),
    [
        (Relation.EQUAL, "7/2", 0, True), (Relation.EQUAL, "7/3", 0, False),
        (Relation.AT_MOST, "4", 0, True), (Relation.AT_MOST, "3", 0, False),
        (Relation.AT_LEAST, "3", 0, True), (Relation.AT_LEAST, "4", 0, False),
        (Relation.ABOUT, "3", 0, True), (Relation.ABOUT, "3.45", 1, True),
        (Relation.ABOUT, "3.44", 1, False), (Relation.ABOUT, "3.495", 2, True),
        (Relation.ABOUT, "3.49", 2, False),
    ],
)  # fmt: skip
def test_relations(relation: Relation, predicted: str, places: int, holds: bool) -> None:
    # The measured value is 3.5 throughout; about means within half a unit of the last decimal.
    claim = changed(
        relation,
        places=places,
        cases=domain("one", a=(1,), b=(2,)),
        predicted=lambda _: Fraction(predicted),
        measured=lambda _: Fraction(7, 2),
    )
    assert (decide(claim).verdict is ClaimVerdict.HOLDS) == holds


def test_a_limit_is_told() -> None:
    true = changed(predicted=SUM.measured)
    assert decide(true).is_complete
    some = decide(true, limit=5)
    assert (some.verdict, some.checked, some.findings[0].total) == (ClaimVerdict.HOLDS, 5, 12)
    assert not some.is_complete
    assert decide(SUMS, limit=1).is_complete  # refuted is refuted


def test_a_claim_has_a_reading_and_a_reading_a_case() -> None:
    with pytest.raises(ValueError, match=r"test\.sum: a claim has a reading, got none"):
        replace(SUMS, readings=())
    with pytest.raises(ValueError, match=r"test.sum: the domain \(none\) has no case"):
        decide(changed(cases=domain("none", a=())))


def test_no_case_has_one_rank() -> None:
    # One rank is no pipeline: its cases refute formulas for reasons that no pipeline has.
    for name, claim in sampled([*claims().items()], every=7):
        for each in claim.readings:
            for cases in (each.domain, each.domain_for(is_wide=True)):
                if "p" in cases.names:
                    assert cases.table[:, cases.names.index("p")].min() >= 2, name


def test_claims_are_listed_by_paper_and_say_where_they_stand() -> None:
    found = claims()
    assert claims("bpipe").items() <= found.items()
    for name, claim in found.items():
        assert name == claim.id
        assert name.startswith(f"{claim.paper}.")
        assert claim.source
        assert claim.statement.endswith((".", ")"))
        assert claim.corrected is None or claim.corrected in found
    with pytest.raises(ValueError, match="no claims of 'nobody'; the papers are"):
        claims("nobody")


@pytest.mark.parametrize(
    ("relation", "predicted", "places", "surviving"),
    [
        # Measured are 7/2 and 4 in turn. <= 4 is attained; 9/2 is not: 9/2 - 1/2 still covers 4.
        (Relation.AT_MOST, "4", 0, set()),
        (Relation.AT_MOST, "9/2", 0, {-1}),
        (Relation.AT_MOST, "17/4", 0, {-1}),  # a step is 1/4: 17/4 - 1/4 = 4 covers all
        (Relation.AT_LEAST, "7/2", 0, set()),
        (Relation.AT_LEAST, "3", 0, {1}),
        # 3.7 covers both to 0 places; 4.7 loses 3.5 and 4, 2.7 both.
        (Relation.ABOUT, "3.7", 0, set()),
        # 3.5 rounds to 3 as well as to 4, so 3 would do for 3.5, not for 4.
        (Relation.ABOUT, "3.5", 0, set()),
    ],
)
def test_a_mutant_one_step_beyond_survives_where_no_case_comes_near(
    relation: Relation, predicted: str, places: int, surviving: set[int]
) -> None:
    values = {1: Fraction(7, 2), 2: Fraction(4)}
    claim = changed(
        relation,
        places=places,
        cases=domain("two", a=(1, 2), b=(1,)),
        predicted=lambda _: Fraction(predicted),
        measured=lambda at: values[at["a"]],
    )
    decision = decide(claim)
    assert decision.verdict is ClaimVerdict.HOLDS
    assert decision.findings[0].surviving == surviving


def test_equal_values_have_no_room_on_either_side_and_what_is_refuted_no_mutants() -> None:
    for claim in (changed(predicted=SUM.measured), SUMS):
        assert decide(claim).findings[0].surviving == frozenset()
    assert SUM.mutants == {-1, 1}


def test_only_a_bound_can_have_slack() -> None:
    assert replace(SUM, relation=Relation.AT_MOST, slack="it is a bound").slack
    with pytest.raises(ValueError, match="only <= and >= can have slack, not =="):
        replace(SUM, slack="it is no bound")
