"""A sweep is reduced unless the whole is asked for; another word is refused."""

from __future__ import annotations

from itertools import product

import pytest

from proofs_tests.sized import VARIABLE, paired, sampled, sized


@pytest.mark.parametrize(("asked", "given"), [(None, 3), ("", 3), ("full", 400)])
def test_the_whole_runs_only_where_it_is_asked_for(
    asked: str | None, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if asked is not None:
        monkeypatch.setenv(VARIABLE, asked)
    assert sized(3, full=400) == given


def test_another_word_does_not_pass_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(ValueError, match="BUBBLEPROOF_SWEEP must be 'full' or not set, got '1'"):
        sized(3, full=400)


@pytest.mark.parametrize(("asked", "given"), [("", [0, 3, 6]), ("full", [0, 1, 2, 3, 4, 5, 6])])
def test_a_sample_is_spread_over_all_cases(
    asked: str, given: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, asked)
    assert list(sampled(range(7), every=3)) == given


def test_a_sample_of_a_product_has_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    diagonal = sampled(list(product("abc", "xyz")), every=4)
    assert diagonal == [("a", "x"), ("b", "y"), ("c", "z")]


def test_a_sample_of_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="every must be at least 2, got 1"):
        sampled([1, 2], every=1)


def test_each_case_has_forms_in_turn_and_all_in_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert paired("abcd", "xy", (1, 2)) == [
        ("a", "x", 1),
        ("b", "y", 1),
        ("c", "x", 2),
        ("d", "y", 2),
    ]
    monkeypatch.setenv(VARIABLE, "full")
    assert paired("ab", "xy") == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
