"""The examples below each command's help: all are parsed, and those that take little are run."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.main import get_command

import bubbleproof as bp
from bubbleproof.cli import app
from bubbleproof.commands.options.shared_options import EXAMPLES
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import sized
from proofs_tests.structure import ROOT

LINES = [line for lines in EXAMPLES.values() for line in lines]
# What needs torch, a minute, or a browser is parsed alone; other tests run such lines.
PARSED = ("run", "replay", "profile", "serve", "hand-over", "bench", "calibrate", "pareto")
RUN = [line for line in LINES if line.split()[1] not in PARSED and "--yours" not in line]
PROBLEM = """ranks = 2
microbatches = 4
[durations]
forward = 2
backward = 4
[memory]
capacity = 4
activation = 2
"""
PLAN = f"{PROBLEM}[plan]\nchunks = [1, 2]\n"
EXAMPLE_FILES = {
    "cluster.toml": "cluster/llama-13b-64xA100.toml",
    "rows.csv": "cluster/iterations.csv",
    "dumps": "ci/hang",
    "traces": "ci/trace",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that an example names."""
    monkeypatch.chdir(tmp_path)
    Path("schedules").mkdir()
    for name in ("schedule.csv", "schedules/a.csv"):
        bp.write(name, bp.family("1f1b")(p=2, m=4))
    Path("problem.toml").write_text(PROBLEM)
    Path("plan.toml").write_text(PLAN)
    for name, source in EXAMPLE_FILES.items():
        given = ROOT / "examples" / source
        (shutil.copytree if given.is_dir() else shutil.copy)(given, tmp_path / name)
    return tmp_path


def test_every_command_has_examples_and_shows_them(command: Run) -> None:
    assert [*EXAMPLES] == [*get_command(app).commands]  # type: ignore[attr-defined]  # a group
    shown(EXAMPLES, command)


def shown(examples: Mapping[str, Sequence[str]], command: Run) -> None:
    """By the help of each command."""
    for name, lines in examples.items():
        told = command(name, "--help").out
        for line in lines:
            assert f"    {line}\n" in told


@pytest.mark.parametrize("line", LINES)
def test_an_example_has_the_arguments_and_options_of_its_command(line: str) -> None:
    program, name, *words = shlex.split(line)
    assert program == "bubbleproof"
    parsed = get_command(app).commands[name].make_context(name, words)  # type: ignore[attr-defined]  # a group
    assert parsed.params


def test_a_line_with_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match="No such option: --tmie-limit"):
        get_command(app).commands["solve"].make_context("solve", ["p.toml", "--tmie-limit", "3"])  # type: ignore[attr-defined]  # a group


@pytest.mark.sweep
@pytest.mark.parametrize("line", RUN[:: sized(2, full=1)])
def test_an_example_runs(command: Run, folder: Path, line: str) -> None:
    _, name, *words = shlex.split(line)
    answer = command(name, *words)
    # Two schedules differ, a job stands still, and in the traces ranks wait for a slow one.
    assert answer.status == (name in ("diff", "hang", "trace")), answer.err
    written = [words[n + 1] for n, word in enumerate(words) if word in ("-o", "--certificate")]
    assert all((folder / target).exists() for target in written)
