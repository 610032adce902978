"""The command answers what was recorded (``proofs_tests.recorded``)."""

from __future__ import annotations

import json
import os

import pytest

from proofs_tests.recorded import RECORDED, answered, commands, digest

STEP = 1 if "EVERY_ANSWER" in os.environ else 5
LINES = commands()


def test_every_command_has_a_recorded_answer() -> None:
    assert list(json.loads(RECORDED.read_text())) == LINES
    assert len(LINES) > 200


@pytest.mark.sweep
@pytest.mark.parametrize("line", LINES[::STEP])
def test_the_answer_is_the_recorded_one(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    found = answered(line)
    assert digest(found) == json.loads(RECORDED.read_text())[line], found
