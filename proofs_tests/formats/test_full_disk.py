"""A disk that is full, a folder that is read-only, a write that is interrupted: nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bubbleproof.formats import ScheduleFile, UnusableInput, write_schedule, write_table
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.files import write_bytes
from bubbleproof.formats.perfetto import write_trace
from bubbleproof.report.page import ReportPage, write_page
from bubbleproof.theory.families import member

resource = pytest.importorskip("resource", reason="the limit of a file's size is POSIX's")
FOUND = member("1f1b", p=2, m=4)
WRITERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: write_bytes(path, bytes(5000)),
    "schedule": lambda path: write_schedule(path, ScheduleFile.of(FOUND.problem, FOUND.schedule)),
    "table": lambda path: write_table(path, FOUND.schedule.program),
    "trace": lambda path: write_trace(path, FOUND.problem, FOUND.schedule),
    "page": lambda path: write_page(path, ReportPage(title="x" * 5000)),
}


@contextmanager
def full_after(most: int) -> Iterator[None]:
    """The system takes so many bytes of a file and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_nothing_half_there(
    writer: str, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(UnusableInput) as refused, full_after(16):  # all of them write more
        WRITERS[writer](path)
    assert "a: expected a file that can be written, found file too large" in str(refused.value)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]
    WRITERS[writer](path)  # the stand-in alone was in the way
    assert path.stat().st_size > 16


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", interrupted)  # all is written, and nothing renamed yet
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_content_is_on_the_disk_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        done.append(f"{os.fstat(number).st_size} bytes")  # what was buffered is written by then
        sync(number)

    def renamed(old: Path, new: Path) -> None:
        done.append("renamed")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_bytes(tmp_path / "a", b"new")
    assert done == ["3 bytes", "renamed"]


@pytest.mark.skipif(os.name != "posix", reason="only POSIX files have modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("old")
    path.chmod(mode)
    link.symlink_to(path)
    for target in (path, link):
        write_bytes(target, b"new")
        assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)
    with written_together(str(tmp_path / "folder"), str(path)) as (folder, file):
        (folder / "b").write_text("b")
        file.write_text("newer")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("newer", mode)
    usual = tmp_path / "usual"
    usual.touch()
    assert (tmp_path / "folder/b").stat().st_mode == usual.stat().st_mode


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UnusableInput, match="permission denied"):
            write_bytes(tmp_path / "a", b"new")
    finally:
        tmp_path.chmod(0o700)
