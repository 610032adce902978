"""A table of wrong inputs: each is refused in one line that says what, where, and what would do.

The lines were read one by one when they were put down; ``wrong_inputs.toml`` holds them.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest

import bubbleproof as bp
from proofs_tests.commands.conftest import Run

TABLE = tomllib.loads(Path(__file__).with_name("wrong_inputs.toml").read_text("utf-8"))
BASES = {
    "empty": "",
    "problem": """name = "a"
ranks = 2
microbatches = 2
[durations]
forward = 2
backward = 4
[memory]
capacity = 3
[plan]
chunks = [1, 2]
""",
    "model": """[model]
name = "llama-2-7b"
[cluster]
card = "a100-80gb"
cards = 8
[batch]
samples = 8
sequence = 4096
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with files of every kind."""
    texts = {"odd.json": "{}", "empty.toml": "", "empty.csv": "", "table.csv": "0F0,0B0\n"}
    texts["x.txt"] = "hello"
    (tmp_path / "d").mkdir()
    for name, text in {**texts, "good.toml": BASES["problem"]}.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def require_line(error: str, says: str) -> None:
    assert error.count("\n") == 1
    line = error.removeprefix("bubbleproof: ").rstrip("\n")
    if says.endswith("..."):
        assert line.startswith(says.removesuffix("..."))
    else:
        assert line == says


def test_the_table_is_large() -> None:
    assert len(TABLE["commands"]) + len(TABLE["files"]) >= 140
    assert len(TABLE["python"]) >= 70


@pytest.mark.parametrize("row", TABLE["commands"], ids=lambda row: row["words"])
def test_a_wrong_command_line(row: dict[str, str], folder: Path, command: Run) -> None:
    before = sorted(folder.iterdir())
    answer = command(*shlex.split(row["words"]))
    assert (answer.status, answer.out) == (2, "")
    require_line(answer.err, row["says"])
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("row", TABLE["files"], ids=lambda row: f"{row['of']} {row['new']!r}")
def test_a_wrong_file(row: dict[str, str], folder: Path, command: Run) -> None:
    base = BASES[row["of"]]
    assert base.count(row["old"]) == 1 or not row["old"]
    text = base.replace(row["old"], row["new"]) if row["old"] else base + row["new"]
    (folder / "p.toml").write_text(text, "utf-8")
    before = sorted(folder.iterdir())
    answer = command("plan", "p.toml", "--time-limit", 2)
    assert (answer.status, answer.out) == (2, "")
    require_line(answer.err, f"p.toml: {row['says']}")
    assert sorted(folder.iterdir()) == before


@pytest.mark.torch
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("row", TABLE["python"], ids=lambda row: row["call"])
def test_a_wrong_call(row: dict[str, str]) -> None:
    """Refused in one line that names nothing of Python's own."""
    small = bp.Pipeline(num_ranks=2, num_microbatches=3)
    with pytest.raises((TypeError, ValueError)) as caught:
        eval(row["call"], {"bp": bp, "SMALL": small})
    require_line(f"{caught.value}\n", row["says"])
    private = ("__", "positional argument", "keyword argument", "module 'bubbleproof")
    assert not any(word in str(caught.value) for word in private)


def test_what_is_too_large_to_plan_is_not_told_to_need_memory(folder: Path, command: Run) -> None:
    """10^8 samples in microbatches of 1 to 8: of those deployments that fit each has too many."""
    text = BASES["model"].replace("samples = 8", "samples = 100000000")
    (folder / "p.toml").write_text(text, "utf-8")
    answer = command("plan", "p.toml", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["status"]) == (3, "UNKNOWN")
    assert "larger than a plan takes (expected at most 4000000 actions" in found["statement"]
    by_status = {row["status"] for row in found["candidates"]}
    assert by_status == {"TOO_LARGE", "INFEASIBLE"}
    assert "fits with" not in command("plan", "p.toml").out


def test_what_does_not_fit_is_told_the_memory_it_needs(folder: Path, command: Run) -> None:
    text = BASES["model"].replace("7b", "70b").replace("cards = 8", "cards = 1")
    (folder / "p.toml").write_text(text, "utf-8")
    answer = command("plan", "p.toml")
    assert answer.status == 1
    assert answer.out.startswith("DOES NOT FIT  no deployment fits; use cards of ")
    assert "GiB or more, as " in answer.out.splitlines()[0]


@pytest.mark.usefixtures("folder")
def test_a_schedules_file_is_measured_like_a_family(command: Run) -> None:
    assert command("convert", "1f1b", "p=2", "m=2", "own.json").status == 0
    own = json.loads(command("measure", "own.json", "--json").out)
    published = json.loads(command("measure", "1f1b", "p=2", "m=2", "--json").out)
    assert own.pop("schedule") == "1f1b p=2 m=2"
    assert (own.pop("family"), own.pop("params")) == (None, {})
    assert own == {key: published[key] for key in own}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("Pipeline(ranks=4)", "no field 'ranks'; the nearest are num_ranks"),
        ("Pipeline(num_ranks='4', num_microbatches=8)", "num_ranks must be a whole number"),
        ("solve(4)", "solve: expected a Pipeline, a Problem or the path of a problem file"),
        ("solve('p.toml', timelimit=3)", "(did you mean 'time_limit'?)"),
        ("family('1f1v')", "no family '1f1v' (did you mean '1f1b'?)"),
        ("family('1f1b')(p=4)", "parameter m is missing; for example p=4 m=8"),
        ("family('1f1b')(ranks=4, m=8)", "write p=4"),
        ("check('nothing')", "check: no schedule 'nothing'; expected a schedule (.json)"),
        ("measure(None)", "measure: expected a problem and a schedule"),
        ("plan('nothing.toml')", "nothing.toml: expected a file, found no such file"),
        ("read('nothing')", "read: a file ends in .json, .csv or .toml, got 'nothing'"),
        ("Solve", "bubbleproof has no 'Solve' (did you mean 'solve'?)"),
    ],
)
def test_a_mistake_in_python_is_told_without_internals(wrong: str, says: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        eval(f"bp.{wrong}", {"bp": bp})
    said = str(caught.value)
    assert says in said
    assert "__" not in said
