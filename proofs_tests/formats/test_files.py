"""Reading refuses early and in one line; writing replaces a file whole or not at all."""

from __future__ import annotations

import io
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bubbleproof.formats import UnusableInput, files, read_problem, read_schedule, read_table
from bubbleproof.formats.errors import about, quoted
from bubbleproof.formats.files import MEBIBYTE, read_text, write_text
from bubbleproof.theory.near_names import nearest_name

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Reader = Callable[[Path], object]
READERS: list[Reader] = [read_schedule, read_problem, read_table]
HUNDRED_MEGABYTES = 100 * 10**6

every_reader = pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)


def refused(read: Reader, path: Path) -> str:
    """The message of a refusal, without the folder; one short line whatever the file holds."""
    with pytest.raises(UnusableInput) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message.replace(f"{path.parent}/", "")


@every_reader
def test_missing_file(read: Reader, tmp_path: Path) -> None:
    assert refused(read, tmp_path / "none") == "none: expected a file, found no such file"


@every_reader
def test_folder(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert refused(read, tmp_path / "folder") == "folder: expected a file, found a folder"


@every_reader
def test_pipe(read: Reader, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    message = "pipe: expected a regular file, found a device or a pipe"
    assert refused(read, tmp_path / "pipe") == message


@every_reader
def test_name_with_a_zero_byte(read: Reader) -> None:
    told = refused(read, Path("a\0b"))
    # the words within are Python's, and differ from version to version
    assert re.fullmatch(r"a\?b: expected a file name, found '[^'\n]*embedded null [^'\n]*'", told)


@every_reader
def test_binary(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"{,\0")
    assert refused(read, path) == ("a: expected UTF-8 text, found a zero byte at offset 2 (binary)")


@every_reader
def test_not_utf8(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"{\n\xff\xfe")
    assert refused(read, path) == "a: expected UTF-8 text, found byte 0xff at offset 2"


@every_reader
@pytest.mark.parametrize("content", ["zeros", "random", "letters", "braces", "commas", "one key"])
def test_large_garbage_is_refused_by_its_beginning(
    read: Reader, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "garbage"
    filling = {
        "zeros": b"",
        "random": random.Random(1).randbytes(1 << 20),
        "letters": b"a" * (1 << 20),
        "braces": b"{" * (1 << 20),
        "commas": b"," * (1 << 20),
        "one key": b'{"format": "' + b"x" * (1 << 20),
    }[content]
    path.write_bytes(filling)
    os.truncate(path, HUNDRED_MEGABYTES)  # the rest is zeros that take no room on the disk
    taken: list[int] = []

    class Counted(io.FileIO):
        def readinto(self, buffer: WriteableBuffer) -> int:
            taken.append(super().readinto(buffer) or 0)
            return taken[-1]

    def counting(path: str, _: str) -> io.BufferedReader:
        return io.BufferedReader(Counted(path))  # which reads by readinto alone

    monkeypatch.setattr(files, "open", counting, raising=False)
    refused(read, path)
    assert sum(taken) <= 5 * MEBIBYTE  # a row of a table may have four


def test_large_json_with_a_good_beginning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"format": "bubbleproof/schedule", "version": 1, "name": ' + "[" * 10**6)
    assert refused(read_schedule, path) == (
        "a.json: expected a few levels of nesting, found many more"
    )


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf0F0,0B0\r\n")
    assert [str(a) for a in read_table(path).program.actions] == ["0F0", "0B0"]


def test_character_across_the_opening_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    text = "x" * ((1 << 16) - 1) + "é"  # its two bytes stand on both sides of the 64 KiB border
    path.write_text(text, encoding="utf-8")
    assert read_text(path, limit=1 << 20) == text


def test_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    message = "a: expected at most 1 MiB, found 1048577 bytes"
    assert refused(lambda p: read_text(p, limit=1 << 20), path) == message


def test_write_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_write_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    message = "a: expected a file that can be written, found no space left on device"
    assert refused(lambda p: write_text(p, "new"), path) == message
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_write_refuses_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    message = "pipe: expected a regular file to write, found a device or a pipe"
    assert refused(lambda p: write_text(p, ""), tmp_path / "pipe") == message
    message = f"{tmp_path.name}: expected a regular file to write, found a folder"
    assert refused(lambda p: write_text(p, ""), tmp_path) == message


def test_write_to_no_folder(tmp_path: Path) -> None:
    message = f"a: expected a file in a folder, found no folder {tmp_path / 'none'}"
    assert refused(lambda p: write_text(p, ""), tmp_path / "none" / "a") == message


def test_write_of_half_a_character(tmp_path: Path) -> None:
    path = tmp_path / "a"
    message = "a: expected UTF-8 text to write, found half a character"
    assert refused(lambda p: write_text(p, "\ud800"), path) == message
    assert not path.exists()


def test_long_values_are_shortened() -> None:
    assert quoted("x" * 60) == "'" + "x" * 60 + "'"
    assert quoted("x" * 61) == "'" + "x" * 60 + "...' (61 characters)"
    assert quoted([0] * 7) == "a list of 7"
    assert quoted({"a": 1}) == "a table of 1 key"
    assert quoted(10**5000) == "a number of more than 60 digits"
    assert quoted(True) == "true"
    assert quoted(None) == "nothing"


def test_message_is_one_line() -> None:
    error = UnusableInput("", "x", quoted("c\nd\x1b[0m"), "a\nb")
    assert re.fullmatch(r"a\?b: expected x, found 'c\\nd\\x1b\[0m'", str(error))


def test_nearest_word() -> None:
    assert nearest_name("forwrd", ["forward", "backward"]) == "forward"
    assert nearest_name("zzz", ["forward", "backward"]) is None


def test_an_error_gets_its_file_once() -> None:
    with pytest.raises(UnusableInput) as caught, about("outer.json"), about("inner.json"):
        raise UnusableInput("orders[1]", "an action", "'x'")
    assert str(caught.value) == "inner.json: orders[1]: expected an action, found 'x'"
    assert str(UnusableInput("", "a file", "a folder")) == "expected a file, found a folder"
