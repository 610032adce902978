"""The end of every command: what nobody foresaw, Ctrl-C, and a reader who goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
from typer.main import get_command

from bubbleproof.cli import app
from bubbleproof.commands.last_resort import FAULT, status_of_call
from bubbleproof.commands.measuring import measure
from proofs_tests.commands.conftest import Run
from proofs_tests.own_process import run_alone

WORDS = ("measure", "1f1b", "p=2", "m=2")


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(measure, "run_measure", fail)


@pytest.mark.parametrize(
    "error",
    [TypeError("cannot pickle 'x'\nmore"), KeyError("name"), RecursionError(), ImportError()],
)
def test_what_nobody_foresaw_is_one_line_and_a_status_of_its_own(
    command: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    raising(monkeypatch, error)
    answer = command(*WORDS)
    assert (answer.status, answer.out) == (FAULT, "")
    assert FAULT not in (0, 1, 2, 3, 130)
    assert answer.err.startswith(f"bubbleproof: measure: {type(error).__name__}: ")
    assert "This is a fault of bubbleproof; BUBBLEPROOF_TRACEBACK=1" in answer.err
    assert answer.err.count("\n") == 1


def test_the_traceback_is_shown_on_request(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, TypeError("what"))
    assert "Traceback" not in command(*WORDS).err
    answer = command("--traceback", *WORDS)
    assert answer.status == FAULT
    assert answer.err.startswith("Traceback (most recent call last):")
    assert "in fail" in answer.err
    monkeypatch.setenv("BUBBLEPROOF_TRACEBACK", "1")
    assert "in fail" in command(*WORDS).err


def test_a_note_of_an_error_is_in_its_line(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    error = IndexError("7")
    error.add_note("while measuring x at p=2")
    raising(monkeypatch, error)
    assert "measure: IndexError: 7; while measuring x at p=2. This is" in command(*WORDS).err


def test_ctrl_c_is_130_and_no_traceback(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    answer = command(*WORDS)
    assert (answer.status, answer.out) == (130, "")
    assert answer.err.strip() == "bubbleproof: interrupted"


def swallowed() -> None:
    """A search that Ctrl-C ends gives what it has, and its command's status is that of success."""

    def search() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            return 0
        return 1

    def load() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None
        return 0

    assert status_of_call(lambda: 0) == 0
    assert status_of_call(search) == 130
    said = StringIO()
    with redirect_stderr(said):
        assert status_of_call(load) == 130
    assert said.getvalue() == "bubbleproof: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert status_of_call(lambda: 0) == 0


def test_ctrl_c_is_130_also_where_a_search_ended_well() -> None:
    run_alone(swallowed)


def test_a_reader_who_goes_away_hears_no_more() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "bubbleproof", *WORDS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, b"")


COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]  # it is a group


@pytest.mark.skipif(os.name == "nt", reason="no shell that closes a stream")
@pytest.mark.parametrize("word", ["--version", "", *COMMANDS])
def test_a_closed_standard_output_is_unusable(word: str, tmp_path: Path) -> None:
    """Nothing is done: the first file that is opened would become the standard output."""
    shell = f'exec "{sys.executable}" -m bubbleproof {word} >&-'
    done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "bubbleproof: standard output is closed, and the answer goes there; send it to a file, or "
        f"to {os.devnull}\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="no shell that closes a stream")
@pytest.mark.parametrize("words", ["--version", "measure 1f1b p=2 m=2", "measure"])
def test_closed_errors_change_no_status(words: str) -> None:
    command = f'exec "{sys.executable}" -m bubbleproof {words}'
    statuses = [
        subprocess.run(["sh", "-c", command + end], capture_output=True).returncode
        for end in ("", " 2>&-")
    ]
    assert statuses[0] == statuses[1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
@pytest.mark.parametrize("words", ["--version", "measure 1f1b p=2 m=2"])
def test_a_full_disk_is_one_line(words: str) -> None:
    command = f'exec "{sys.executable}" -m bubbleproof {words} > /dev/full'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left" in done.stderr
