"""Deciding claims: order of counterexamples, relations, limits and what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bubbleproof.theory.claims import Claim, Domain, Relation, Standing, claims, decide, grid

SQUARES = Claim(
    id="test.square",
    paper="test",
    source="a test",
    statement="a + b is 5",
    quantity="a sum",
    relation=Relation.EQUAL,
    domain=grid("a, b in 1..4, a != b", where=lambda at: at["a"] != at["b"], a=range(1, 5),
                b=range(1, 5)),
    predicted=lambda _: Fraction(5),
    measured=lambda at: Fraction(at["a"] + at["b"]),
)  # fmt: skip


def test_the_smallest_counterexample_has_the_least_sum_and_then_the_least_first_value() -> None:
    # Sums 3 (1,2), (2,1), then 4 (1,3), (3,1), then 5, ...
    found = decide(SQUARES).counterexample
    assert found is not None
    assert str(found) == "a=1 b=2: claimed 5, measured 3"
    at_least_4 = replace(SQUARES, relation=Relation.AT_MOST, predicted=lambda _: Fraction(3))
    found = decide(at_least_4).counterexample
    assert found is not None
    assert dict(found.params) == {"a": 1, "b": 3}
    assert decide(at_least_4).checked == 3


def test_the_order_is_that_of_the_named_parameters() -> None:
    points = grid("all", a=(3, 1, 2), b=(2, 1)).points
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
    claim = replace(
        SQUARES,
        relation=relation,
        places=places,
        domain=grid("one", a=(1,), b=(2,)),
        predicted=lambda _: Fraction(predicted),
        measured=lambda _: Fraction(7, 2),
    )
    assert (decide(claim).standing is Standing.HOLDS) == holds


def test_a_limit_is_told() -> None:
    true = replace(SQUARES, predicted=SQUARES.measured)
    assert decide(true).is_complete
    some = decide(true, limit=5)
    assert (some.standing, some.checked, some.total) == (Standing.HOLDS, 5, 12)
    assert not some.is_complete
    assert decide(SQUARES, limit=1).is_complete  # refuted is refuted


def test_a_missing_input_is_no_verdict() -> None:
    lost = replace(
        SQUARES,
        predicted=None,
        measured=None,
        missing="a cluster",
        domain=Domain(text="", points=()),
    )
    assert decide(lost).standing is Standing.NOT_REPRODUCIBLE
    with pytest.raises(ValueError, match="either both values or the missing input"):
        replace(SQUARES, missing="a cluster")
    with pytest.raises(ValueError, match="either both values or the missing input"):
        replace(SQUARES, measured=None)
    with pytest.raises(ValueError, match=r"the domain \(none\) has no case"):
        replace(SQUARES, domain=Domain(text="none", points=()))


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
