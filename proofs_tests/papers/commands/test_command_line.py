"""``prove`` and ``claims`` beside the core's commands: found, shown, and asked as those are."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from bubbleproof import cli
from bubbleproof.papers.commands import command_line, prove
from bubbleproof.papers.commands.command_line import EXAMPLES, app
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.output_schemas import schema_of
from proofs_tests.commands.test_encodings import (
    test_a_command_prints_in_any_encoding as in_any_encoding,
)
from proofs_tests.commands.test_help_examples import shown
from proofs_tests.commands.test_hostile_names import EVIL, require_harmless
from proofs_tests.commands.test_last_resort import (
    test_a_closed_standard_output_is_unusable as closed,
)
from proofs_tests.commands.test_no_option_ignored import cases_of, changed, declared, refused
from proofs_tests.commands.test_options import kept_names, shows_each_option_once
from proofs_tests.commands.test_targets import texts_of

NAMES = ["prove", "claims"]
OPTIONS = {
    "prove": """
refused | prove gpipe | --timeout 0
changes | prove gpipe | --cvc5
changes | prove gpipe | --json
""",
    "claims": """
refused | claims | --set p=3
changes | claims | --paper bpipe
changes | claims bpipe.eq1 | --audit
refused | claims | --quick
refused | claims | --workers 2
refused | claims | --scheduler tcp://127.0.0.1:1
refused | claims --audit --quick | --cluster tcp://127.0.0.1:1
refused | claims | --limit 3
refused | claims --audit | --engine z3
refused | claims bpipe.eq1 | --engine z3
changes | claims field.few.least | --engine z3
refused | claims | --time-limit 3
changes | claims | --json
""",
}
CASES = [case for name in NAMES for case in cases_of(name, OPTIONS)]


def test_the_command_shows_them_after_its_own(command: Run) -> None:
    listed = [line.split()[0] for line in command("--help").out.splitlines() if line[:2] == "  "]
    assert listed[-2:] == NAMES == [*get_command(app).commands]  # type: ignore[attr-defined]  # a group
    assert len(listed) > len(cli.app.registered_commands)
    told = command("claim", "--help")
    assert (told.status, told.err.count("\n")) == (2, 1)
    assert "'claims'" in told.err


def test_every_option_that_is_declared_has_a_case() -> None:
    for name, options in declared(app).items():
        assert {case.option.split()[0] for case in cases_of(name, OPTIONS)} == options, name


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_no_option_is_ignored(case: tuple[str, str, str], tmp_path: Path, command: Run) -> None:
    if "--cvc5" in case and find_spec("cvc5") is None:
        pytest.skip("cvc5 is an extra")
    judge = {"refused": refused, "changes": changed}[case[0]]
    judge(case, tmp_path, command)  # type: ignore[arg-type]  # a Case


def test_their_help_is_as_that_of_others(command: Run) -> None:
    assert [*EXAMPLES] == NAMES
    shown(EXAMPLES, command)
    assert kept_names(command_line) == NAMES
    shows_each_option_once(app, command)
    assert texts_of(app) == {
        "prove": {"theorems"},
        "claims": {"names", "at", "paper", "cluster", "scheduler", "engine"},
    }


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_has_the_arguments_and_options_of_its_command(line: str) -> None:
    _, name, *words = shlex.split(line)
    parsed = get_command(app).commands[name].make_context(name, words)  # type: ignore[attr-defined]  # a group
    assert parsed.params


@pytest.mark.parametrize(("name", "told"), [("prove", "gpipe"), ("claims", "BPipe")])
def test_defaults(command: Run, monkeypatch: pytest.MonkeyPatch, name: str, told: str) -> None:
    few = {key: theorems()[key] for key in ("gpipe", "1f1b")}  # all take a minute
    monkeypatch.setattr(prove, "known_theorems", lambda: few)
    answer = command(name)
    assert answer.status == 0, answer.err
    assert told in answer.out
    assert schema_of(name) is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_standard_output_is_unusable(name: str, tmp_path: Path) -> None:
    closed(name, tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("prove", "gpip"), "(did you mean 'gpipe'?)"),
        (("claims", "--paper", "bpip"), "(did you mean 'bpipe'?)"),
        (
            ("claims", "--audit", "--quick", "--workers", 10**6),
            "workers must be 256 or less",
        ),
        (
            ("prove", "--timeout", "inf"),
            "--timeout must be above 0 and at most 1000000 seconds",
        ),
        (
            ("prove", "--timeout", "nan"),
            "--timeout must be above 0 and at most 1000000 seconds",
        ),
    ],
)
def test_a_wrong_word_or_number_is_refused_in_one_line(
    command: Run, words: tuple[object, ...], told: str
) -> None:
    answer = command(*words)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert told in answer.err


def test_a_hostile_word_is_harmless(command: Run) -> None:
    answer = command("prove", EVIL)
    assert answer.status == 2
    require_harmless(answer)


@pytest.mark.parametrize("line", ["claims --paper bpipe", "claims bpipe.mu --set p=8 m=32 s=3"])
def test_a_command_prints_in_any_encoding(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_any_encoding(line, tmp_path, monkeypatch)
