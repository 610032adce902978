"""What is written together is all there or all as before, wherever it is interrupted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from bubbleproof.formats import all_or_nothing
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text

NAMES = ("a.json", "b.toml", "c.csv")
PUT = all_or_nothing._put


def write(folder: Path, proof: Path, text: str) -> None:
    """Three files of a folder, and one beside it."""
    with written_together(str(folder), str(proof)) as (inside, beside):
        for name in NAMES:
            (inside / name).write_text(text, "utf-8")
        beside.write_text(text, "utf-8")


def content(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_text("utf-8") for path in files}


def all_of(text: str) -> dict[str, str]:
    return {**{f"plan/{name}": text for name in NAMES}, "proof.json": text}


def at_step(step: int, happens: Callable[[], None]) -> Callable[[Path, str], None]:
    """``_put``, before whose call of that number something happens once."""
    calls: list[str] = []

    def put(new: Path, target: str) -> None:
        calls.append(target)
        if len(calls) == step + 1:
            happens()
        PUT(new, target)

    return put


def full_disk() -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("was_there", [False, True])
def test_where_one_cannot_be_put_all_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, was_there: bool
) -> None:
    if was_there:
        write(tmp_path / "plan", tmp_path / "proof.json", "old")
    before = content(tmp_path)
    monkeypatch.setattr(all_or_nothing, "_put", at_step(step, full_disk))
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "plan", tmp_path / "proof.json", "new")
    assert content(tmp_path) == before == (all_of("old") if was_there else {})


@pytest.mark.parametrize("step", range(4))
def test_an_interruption_between_two_waits_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    write(tmp_path / "plan", tmp_path / "proof.json", "old")
    press = at_step(step, lambda: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(all_or_nothing, "_put", press)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "plan", tmp_path / "proof.json", "new")
    assert content(tmp_path) == all_of("new")


def test_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    write(tmp_path / "plan", tmp_path / "proof.json", "old")
    (tmp_path / "plan" / "notes.txt").write_text("mine", "utf-8")
    write(tmp_path / "plan", tmp_path / "proof.json", "new")
    assert content(tmp_path) == {**all_of("new"), "plan/notes.txt": "mine"}


def test_a_link_that_leads_to_no_file_yet_is_followed(tmp_path: Path) -> None:
    link, folder = tmp_path / "link", tmp_path / "folder"
    link.symlink_to(tmp_path / "meant")
    folder.mkdir()
    with (  # noqa: PT012 - the block is what is tested
        pytest.raises(UnusableInput),
        written_together(None, str(link), str(folder)) as (_, first, second),
    ):
        write_text(first, "one")
        write_text(second, "two")
    assert link.is_symlink()
    assert not link.exists()
    with written_together(None, str(link)) as (_, first):
        write_text(first, "one")
    assert link.is_symlink()
    assert (tmp_path / "meant").read_text() == "one"
