"""Running the command in this process."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bubbleproof.cli import main
from proofs_tests.commands.output_schemas import seen
from proofs_tests.commands.planned import Planned, Plans


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


@pytest.fixture(scope="module")
def plans_made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Answer]]:
    """Where the plans of a module are, and what was answered to each problem."""
    return tmp_path_factory.mktemp("plans"), {}


@pytest.fixture
def planned(command: Run, plans_made: tuple[Path, dict[str, Answer]], tmp_path: Path) -> Plans:
    """``planned(text)`` plans the problem of a file's text, unless a test of the module has."""
    folder, answers = plans_made

    def of(text: str) -> Planned:
        made = folder / str([*answers].index(text) if text in answers else len(answers))
        if text not in answers:
            made.mkdir()
            (made / "problem.toml").write_text(text)
            output = ("-o", made / "out", "--certificate", made / "proofs.json", "--json")
            answers[text] = command("plan", made / "problem.toml", *output)
        assert answers[text].status == 0, answers[text].err
        shutil.copytree(made / "out", tmp_path / "out")
        shutil.copy(made / "proofs.json", tmp_path / "proofs.json")
        return Planned(
            found=json.loads(answers[text].out),
            folder=tmp_path / "out",
            proofs=tmp_path / "proofs.json",
        )

    return of
