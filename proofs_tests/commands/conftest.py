"""Running the command in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bubbleproof.cli import main
from proofs_tests.commands.output_schemas import seen


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answered."""

    status: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``command("measure", "1f1b", "p=4")`` runs the command and returns its answer."""

    def run(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["bubbleproof", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        if "--json" in words and captured.out.startswith("{"):
            seen(list(map(str, words)), captured.out)
        return Answer(int(stopped.value.code or 0), captured.out, captured.err)

    return run
