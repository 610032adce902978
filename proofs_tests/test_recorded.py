"""The command answers what was recorded (``proofs_tests.recorded``)."""

from __future__ import annotations

import json
import os

import pytest

from proofs_tests.recorded import RECORDED, answered, commands, digest, is_of_papers
from proofs_tests.structure import BESIDE

STEP = 1 if "EVERY_ANSWER" in os.environ else 5
LINES = commands()


def test_every_command_has_a_recorded_answer() -> None:
    assert list(json.loads(RECORDED.read_text())) == LINES
    assert len(LINES) > 200


@pytest.mark.sweep
@pytest.mark.parametrize(
    "line", [each for each in LINES[::STEP] if "papers" in BESIDE or not is_of_papers(each)]
)
def test_the_answer_is_the_recorded_one(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    found = answered(line)
    assert digest(found) == json.loads(RECORDED.read_text())[line], found
