"""The cases of a claim: generated late, ordered, and each there once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bubbleproof.papers.claims import Domain, grid, listed


def test_nothing_is_generated_before_the_first_look() -> None:
    looks: list[int] = []

    def rows() -> Iterator[tuple[int, int]]:
        looks.append(1)
        yield from ((2, 1), (1, 1), (1, 2))

    domain = listed("three", ("a", "b"), rows)
    assert (domain.names, looks) == (("a", "b"), [])
    assert [tuple(point.values()) for point in domain.points] == [(1, 1), (1, 2), (2, 1)]
    assert (len(domain.points), looks) == (3, [1])


def test_a_case_is_a_mapping_of_plain_numbers() -> None:
    points = grid("all", a=(3, 1), b=range(2)).points
    # Sums 1, 2, 3, 4.
    assert points[0] == {"a": 1, "b": 0}
    assert points[-1] == {"a": 3, "b": 1}
    assert points[1:3] == ({"a": 1, "b": 1}, {"a": 3, "b": 0})
    assert type(points[0]["a"]) is int
    assert {"a": 3, "b": 1} in points


def test_a_case_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a case of a is there twice"):
        len(listed("twice", ("a",), lambda: [(1,), (2,), (1,)]).points)


def test_cases_given_one_by_one_have_a_table() -> None:
    domain = Domain(text="two", points=({"a": 5, "b": 1}, {"a": 2, "b": 9}))
    assert domain.names == ("a", "b")
    assert domain.table.tolist() == [[5, 1], [2, 9]]
    assert Domain(text="none", points=()).table.shape == (0, 0)
    with pytest.raises(ValueError, match="name different parameters"):
        _ = Domain(text="odd", points=({"a": 1}, {"b": 1})).names
