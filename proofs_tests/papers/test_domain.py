"""The cases of a claim: generated late, ordered, and each there once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bubbleproof.papers.claims.domain import Params, domain


def test_nothing_is_generated_before_the_first_look() -> None:
    looks: list[int] = []

    def rows(_: Params) -> Iterator[tuple[int, int]]:
        looks.append(1)
        yield from ((2, 1), (1, 1), (1, 2))

    three = domain("three", a_b=rows)
    assert (three.names, looks) == (("a", "b"), [])
    assert [tuple(point.values()) for point in three.points] == [(1, 1), (1, 2), (2, 1)]
    assert (len(three.points), looks) == (3, [1])


def test_a_case_is_a_mapping_of_plain_numbers() -> None:
    points = domain("all", a=(3, 1), b=range(2)).points
    # Sums 1, 2, 3, 4.
    assert points[0] == {"a": 1, "b": 0}
    assert points[-1] == {"a": 3, "b": 1}
    assert points[1:3] == ({"a": 1, "b": 1}, {"a": 3, "b": 0})
    assert type(points[0]["a"]) is int
    assert {"a": 3, "b": 1} in points


def test_a_case_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a case of a is there twice"):
        len(domain("twice", a=(1, 2, 1)).points)


def test_columns_may_depend_on_those_before_and_hold_several_parameters() -> None:
    wide = domain("wide", a=(1,))
    some = domain(
        "b < a; c d of a list; c is not b",
        a=(1, 2),
        b=lambda at: range(at["a"]),
        c_d=((5, 0), (1, 7)),
        where=lambda at: at["c"] != at["b"],
        wide=wide,
    )
    # (2, 1, 1, 7) alone is left out: c is b there. Sums 6, 7, 8, 9 and 10.
    assert some.names == ("a", "b", "c", "d")
    assert some.table.tolist() == [
        [1, 0, 5, 0],
        [2, 0, 5, 0],
        [2, 1, 5, 0],
        [1, 0, 1, 7],
        [2, 0, 1, 7],
    ]
    assert some.wide is wide
    assert domain("none", a=()).table.shape == (0, 1)
