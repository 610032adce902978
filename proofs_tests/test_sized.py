"""A sweep is reduced unless the whole is asked for; another word is refused."""

from __future__ import annotations

import pytest

from proofs_tests.sized import VARIABLE, sized


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
