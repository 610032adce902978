"""What a command writes at its end: several files together, or none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.commands.targets import written_together
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text


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
