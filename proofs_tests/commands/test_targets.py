"""What a command writes: judged before it begins, and all of it together or none."""

from __future__ import annotations

import errno
import inspect
import os
from pathlib import Path

import pytest
from typer import Typer

from bubbleproof.cli import app
from bubbleproof.commands.options.option_groups import marks_of
from bubbleproof.commands.options.targets import Target
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.test_defaults import PROBLEM
from proofs_tests.costs.measured_cases import B200
from proofs_tests.sized import paired

# The options of text that name nothing to write. Whoever adds one says so here, or marks it.
OTHERS = {
    "run": {"problem", "backend", "memory"},
    "solve": {
        "problem", "engine", "objective", "require", "forbid", "keep", "keep_ranks",
        "memory",
    },
    **{each: {"name"} for each in ("families", "cards", "models", "frameworks")},
    "repair": {"schedule", "problem", "dialect"},
    "pareto": {"problem", "cluster", "scheduler"},
    "plan": {
        "problem", "cluster", "paper", "yours", "what_if", "memory", "scheduler", "cards",
        "samples", "sequence", "hardware", "card", "framework",
    },
    "bench": {"problems", "engine"},
    "verify": {"schedule", "problem", "comm", "certificate", "dialect", "runtime"},
    "measure": {"family", "parameters"},
    "diff": {"a", "b", "dialect"},
    "costs": {"model", "parameters"},
    "calibrate": {"rows", "card", "yours"},
    "estimate": {"rows", "hardware"},
    "replay": {
        "schedule", "backend", "device", "dialect", "model", "layers", "dtype", "optimizer",
        "zero", "comm", "loss_scale",
    },
    "profile": {
        "placement", "capacity", "device", "tick", "model", "layers", "dtype",
    },
    "show": {"schedule", "window", "dialect"},
    "serve": {"schedule", "dialect"},
    "convert": {"schedule", "problem", "dialect", "torch"},  # the last word is its target
    "hand_over": {"schedule", "target"},
    "hang": {"dumps", "schedule"},
    "trace": {"files", "schedule", "names"},
}  # fmt: skip

Writing = tuple[str, str, tuple[str, ...], str]
# How each command that writes is called with a target; its inputs are missing, which comes later.
WRITING: list[Writing] = [
    ("run", "output", ("none.toml", "-o", "TARGET"), ""),
    ("solve", "output", ("none.toml", "-o", "TARGET"), ".json"),
    ("solve", "certificate", ("none.toml", "--certificate", "TARGET"), ".json"),
    ("verify", "coq", ("none.json", "--certificate", "none.json", "--coq", "TARGET"), ".v"),
    ("repair", "output", ("none.json", "-o", "TARGET"), ".json"),
    ("pareto", "output", ("none.toml", "-o", "TARGET"), ".svg"),
    ("pareto", "schedules", ("none.toml", "--schedules", "TARGET"), ""),
    ("plan", "output", ("none.toml", "-o", "TARGET"), ""),
    ("plan", "certificate", ("none.toml", "--certificate", "TARGET"), ".json"),
    ("verify", "junit", ("none.csv", "--junit", "TARGET"), ".xml"),
    ("verify", "sarif", ("none.csv", "--sarif", "TARGET"), ".sarif"),
    ("hand_over", "output", ("none.json", "--to", "torch", "-o", "TARGET"), ""),
    ("costs", "output", ("none.toml", "-o", "TARGET"), ".toml"),
    ("calibrate", "output", ("none.csv", "-o", "TARGET"), ".toml"),
    ("replay", "output", ("none.json", "-o", "TARGET"), ".html"),
    ("profile", "output", ("-o", "TARGET", "--ranks", "1", "--microbatches", "1"), ".toml"),
    ("trace", "output", ("none.json", "-o", "TARGET"), ""),
    ("show", "output", ("none.json", "-o", "TARGET"), ".svg"),
    ("convert", "schedule", ("none.json", "TARGET"), ".csv"),
]


def target_of(hint: object) -> Target | None:
    return next((each for each in marks_of(hint) if isinstance(each, Target)), None)


def marked() -> dict[tuple[str, str], Target]:
    """The options that name what is written, by command and name."""
    found = {}
    for info in app.registered_commands:
        assert info.callback is not None
        for name, parameter in inspect.signature(info.callback).parameters.items():
            if (mark := target_of(parameter.annotation)) is not None:
                found[info.callback.__name__, name] = mark
    return found


def test_every_option_of_text_is_known_to_write_or_not() -> None:
    assert texts_of(app) == OTHERS


def texts_of(of: Typer) -> dict[str, set[str]]:
    """The options and arguments of text that name nothing that is written, by command."""
    found: dict[str, set[str]] = {}
    for info in of.registered_commands:
        assert info.callback is not None
        texts = found.setdefault(info.callback.__name__, set())
        for name, parameter in inspect.signature(info.callback).parameters.items():
            is_text = "str" in str(parameter.annotation.__args__[0])
            if is_text and target_of(parameter.annotation) is None:
                texts.add(name)
    return found


def test_every_option_that_writes_is_tried() -> None:
    assert {(name, option) for name, option, *_ in WRITING} == {*marked(), ("convert", "schedule")}


def lines(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("writing", "bad"),
    paired(WRITING, ["under a file", "of the other kind", "a pipe", "read-only"]),
)
def test_what_cannot_be_written_is_told_before_anything_is_read(
    command: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    writing: Writing,
    bad: str,
) -> None:
    name, option, words, ending = writing
    monkeypatch.chdir(tmp_path)
    is_folder = marked().get((name, option)) is Target.FOLDER
    Path("file").write_text("kept")
    Path(f"folder{ending}").mkdir()
    os.mkfifo(f"pipe{ending}")
    target, why = {
        "under a file": (f"file/x{ending}", "file, which is none"),
        "of the other kind": ("file", "which is none")
        if is_folder
        else (f"folder{ending}", "expected a regular file to write, found a folder"),
        "a pipe": (f"pipe{ending}", "which is none" if is_folder else "found a device or a pipe"),
        "read-only": (f"new/x{ending}", f"found {tmp_path} is read-only"),
    }[bad]
    if bad == "read-only":
        monkeypatch.setattr(os, "access", lambda *_: False)
    before = lines(tmp_path)
    given = (target if word == "TARGET" else word for word in words)
    answer = command(name.replace("_", "-"), *given)
    assert answer.status == 2
    assert answer.err.startswith(f"bubbleproof: {target}: expected ")
    assert why in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert lines(tmp_path) == before
    assert Path("file").read_text() == "kept"


def test_the_folder_of_a_run_that_nobody_named_is_judged_too(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(PROBLEM)
    Path("runs").write_text("kept")
    answer = command("run", "small.toml", "--backend", "virtual")
    assert answer.status == 2
    assert "runs/small: expected a folder to write into, found " in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "small.toml", "-o", "x.json", "--certificate", "./x.json"),
        ("replay", "1f1b", "p=2", "m=2", "-o", "x.json", "-o", "x.json"),
    ],
)
def test_two_outputs_in_one_place_are_refused(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command(*words)
    assert answer.status == 2
    assert "x.json: expected a place of its own for each output, found two" in answer.err
    assert lines(tmp_path) == []


def test_a_name_that_is_too_long_is_told(command: Run, tmp_path: Path) -> None:
    answer = command("show", "1f1b", "p=2", "m=2", "-o", tmp_path / f"{'x' * 300}.svg")
    assert answer.status == 2
    assert "expected a name that can be written, found file name too long" in answer.err


SMALL = [
    ("solve", "small.toml", "-o", "new/a/x.json", "--certificate", "new/b/y.json"),
    ("repair", "1f1b", "p=2", "m=2", "-o", "new/x.json"),
    ("show", "1f1b", "p=2", "m=2", "-o", "new/x.svg"),
    ("show", "1f1b", "p=2", "m=2", "-o", "new/x.perfetto.json"),
    ("convert", "1f1b", "p=2", "m=2", "new/x.csv"),
    ("calibrate", "rows.csv", "-o", "new/x.toml"),
    ("plan", "plan.toml", "-o", "new/plan", "--certificate", "new/c/x.json"),
]


def files(folder: Path) -> None:
    (folder / "small.toml").write_text(PROBLEM)
    (folder / "plan.toml").write_text(f"{PROBLEM}[plan]\n")
    (folder / "rows.csv").write_text(B200)


@pytest.mark.parametrize("words", SMALL)
def test_folders_that_are_missing_are_made(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert all(Path(word).exists() for word in words if word.startswith("new/"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("words", SMALL)
def test_a_full_disk_leaves_nothing_half(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    for word in words:  # what is there already is kept
        if word.endswith((".json", ".svg", ".csv")) and word.startswith("new/"):
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            Path(word).write_text("old")
    before = lines(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bubbleproof.formats.files._replace", full)
    answer = command(*words)
    assert answer.status == 2
    assert "expected a file that can be written, found no space left on device" in answer.err
    assert ".bubbleproof-" not in answer.err
    assert lines(tmp_path) == before
    olds = (Path(word) for word in words if word.startswith("new/") and Path(word).is_file())
    assert all(old.read_text() == "old" for old in olds)


def test_all_of_it_is_there_at_the_end(tmp_path: Path) -> None:
    out, file = tmp_path / "a" / "out", tmp_path / "b" / "proofs.json"
    out.mkdir(parents=True)
    (out / "old").write_text("kept")
    (out / "new").write_text("replaced")
    with written_together(str(out), str(file)) as (folder, proofs):
        write_text(folder / "new", "new")
        write_text(proofs, "proofs")
        assert (out / "new").read_text() == "replaced"
        assert not file.exists()
    assert {path.name: path.read_text() for path in out.iterdir()} == {"old": "kept", "new": "new"}
    assert file.read_text() == "proofs"
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_a_refusal_leaves_nothing_and_names_the_place_that_was_meant(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "b" / "proofs.json"
    with (  # noqa: PT012 - the block is what is tested
        pytest.raises(UnusableInput) as first,
        written_together(str(out), str(file)) as (folder, proofs),
    ):
        write_text(proofs, "proofs")
        write_text(folder / "one", "one")
        write_text(folder / "two", "\ud800")
    assert str(first.value).startswith(f"{out}/two: expected UTF-8 text")
    with (
        pytest.raises(UnusableInput) as second,
        written_together(str(out), str(file)) as (folder, proofs),
    ):
        write_text(proofs, "\ud800")
    assert str(second.value).startswith(f"{file}: expected UTF-8 text")
    assert not list(tmp_path.iterdir())


def test_nothing_asked_for_is_nothing_written(tmp_path: Path) -> None:
    with written_together(None, None):
        pass
    with written_together(str(tmp_path / "out"), None) as (folder, _):
        write_text(folder / "one", "one")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
