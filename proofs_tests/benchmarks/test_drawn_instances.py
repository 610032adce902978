"""The plain model says what ``solve`` proves, on small instances of every kind."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.drawn_instances import KINDS, Found, is_behind, ours, plain


@pytest.mark.parametrize("kind", KINDS)
def test_both_find_the_same_optimum(kind: str) -> None:
    random, compared = Random(f"small {kind}"), 0
    while compared < 2:
        problem = KINDS[kind](random).problem()
        if problem.num_tasks > 36:
            continue
        found, beside = ours(problem, 5, 2), plain(problem, 5, 2)
        if found.is_optimal and beside.is_optimal:
            assert found.value == beside.value == found.bound
        compared += 1


def test_behind_is_a_longer_schedule_or_none() -> None:
    one, other = Found(10, 9, False, 1.0), Found(9, 8, False, 1.0)
    assert is_behind(one, other)
    assert not is_behind(other, one)
    assert is_behind(Found(None, 0, False, 1.0), one)
    assert not is_behind(one, Found(None, 0, False, 1.0))
