"""A file appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.report.files import write_atomically


def test_a_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "a.txt"
    with pytest.raises(ValueError, match=r"a\.txt: expected a file in a folder, found no folder"):
        write_atomically(target, b"old")
    target.parent.mkdir()
    write_atomically(target, b"old")
    assert write_atomically(target, b"new") == target
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write_atomically(tmp_path / "a.txt", b"old")

    def refuse(self: Path, other: Path) -> Path:
        raise OSError(f"cannot rename {self} to {other}")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="cannot rename"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
