"""What one types first: the version, help, a misspelt word, a shell's completion."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.suggestions import with_suggestion
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import paired
from proofs_tests.structure import ROOT


def called(*words: str, **environment: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.argv = {['bubbleproof', *words]!r}\n"
            "from bubbleproof.__main__ import main; main()",
        ],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_version_is_told_by_all_ways_and_loads_no_command(command: Run) -> None:
    told = f"bubbleproof {version('bubbleproof')}\n"
    assert called("--version") == told
    assert command("--version").out == told
    assert bp.__version__ == version("bubbleproof")
    probe = "import sys; sys.argv = ['bubbleproof', '--version']\n"
    probe += "from bubbleproof.__main__ import main; main()\n"
    probe += "assert not {'typer', 'numpy', 'rich', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", probe], cwd=ROOT, check=True, capture_output=True)


def test_h_is_help(command: Run) -> None:
    assert command("-h").out == command("--help").out != ""
    assert command("verify", "-h").out == command("verify", "--help").out != ""


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("asked", "shell"),
    paired(
        [
            ("bubbleproof verif", "verify"),
            ("bubbleproof verify zb-", "zb-h1"),
            ("bubbleproof measure 1", "1f1b"),
        ],
        ["bash", "zsh", "fish"],
    ),
)
def test_a_shell_completes_commands_and_families(asked: tuple[str, str], shell: str) -> None:
    words, told = asked
    completed = called(
        _BUBBLEPROOF_COMPLETE=f"complete_{shell}",
        _TYPER_COMPLETE_ARGS=words,
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        COMP_WORDS=words,
        COMP_CWORD=str(words.count(" ")),
    )
    assert told in completed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("verify", "1f1v"), "no schedule '1f1v' (did you mean '1f1b'?)"),
        (("show", "gipe", "p=2"), "no schedule 'gipe' (did you mean 'gpipe'?)"),
        (("verfy", "1f1b"), "Did you mean 'verify'?"),
        (("verify", "1f1b", "p=2", "m=2", "--comm", "bufered"), "(did you mean 'buffered'?)"),
        (("bench", "--engine", "cpsta"), "(did you mean 'cpsat'?)"),
        (("measure", "1f1b", "p=2", "m=2", "--jso"), "Possible options: --json"),
        (("verify", "1f1b", "p=2", "microbatches=3"), "no parameter 'microbatches=3'; write m=3"),
        (("verify", "1f1b", "--p", "2"), "--p; parameters are written without dashes, as p=4"),
        (("diff", "1f1b", "p=2", "m=2", "gpipe"), "go in quotes, as '1f1b p=4 m=8'"),
        (("show", "1f1b", "p=2", "m=2", "--width", "x"), "'--width': expected a number"),
    ],
)
def test_a_misspelt_word_names_the_nearest(command: Run, words: tuple[str, ...], told: str) -> None:
    answer = command(*words)
    assert answer.status == 2
    assert told in answer.err
    assert answer.err.count("\n") == 1


def test_a_refusal_that_lists_nothing_near_stays_as_it_is() -> None:
    for line in ("x must be one of a, b, got 'qqqq'", "expected a file, found none"):
        assert with_suggestion(line) == line


def test_a_file_that_is_not_there_is_named_first(command: Run, tmp_path: Path) -> None:
    answer = command("trace", str(tmp_path / "none"))
    assert answer.status == 2
    assert answer.err.splitlines()[-1] == f"bubbleproof: {tmp_path}/none: no such file or directory"


def test_the_door_says_how_to_write_what_was_meant() -> None:
    with pytest.raises(ValueError, match=r"no parameter ranks; .*; write p=2$"):
        bp.family("1f1b")(ranks=2, m=2)
    with pytest.raises(TypeError, match=r"check: a family has .* as family\('1f1b'\)\(p=4, m=8\)"):
        bp.check(bp.family("1f1b"))  # type: ignore[call-overload]  # mistaken
    with pytest.raises(TypeError, match="beside: expected what show gives, got int"):
        bp.show("1f1b p=2 m=2").beside(3)  # type: ignore[arg-type]  # mistaken


def test_the_door_names_the_nearest_too() -> None:
    with pytest.raises(AttributeError, match=r"has no 'solv' \(did you mean 'solve'\?\)"):
        getattr(bp, "solv")  # noqa: B009 - mypy knows that there is none
