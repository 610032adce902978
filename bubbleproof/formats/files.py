"""Files in and out: readers that refuse early, a writer that replaces a file whole or not at all.

A reader looks at the size, then at the first ``OPENING_BYTES``, and only then at the rest, so
that a large file of something else costs no more than its beginning. Only regular files are read
or replaced: never a device, a pipe or a folder.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import BinaryIO, Self

from bubbleproof.formats.errors import UnusableInput, about, quoted

OPENING_BYTES = 1 << 16
MEBIBYTE = 1 << 20

# In the folder of a plan; ``plan_folder`` says what they hold.
PLAN_NAME, SCHEDULE_NAME, PROBLEM_NAME = "plan.json", "schedule.json", "problem.toml"

FilePath = str | os.PathLike[str]


class MissingFile(UnusableInput, FileNotFoundError):  # noqa: N818 - as its base
    """A file that was to be read is not there."""

    def __new__(cls, *args: str, **given: str) -> Self:
        """Of both bases the one that has room for an ``errno``: copies are made by this name."""
        del args, given
        return OSError.__new__(cls)

    def __init__(
        self,
        where: str = "",
        expected: str = "a file",
        found: str = "no such file",
        subject: str = "",
        sentence: str = "",
    ) -> None:
        super().__init__(where, expected, found, subject, sentence)
        self.errno = ENOENT


def open_input(path: FilePath, *, limit: int) -> BinaryIO:
    """Open a regular file of at most ``limit`` bytes.

    Raises ``UnusableInput`` for anything else.
    """
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise UnusableInput("", "a file", "a folder")
        if not stat.S_ISREG(status.st_mode):
            raise UnusableInput("", "a regular file", "a device or a pipe")
        if status.st_size > limit:
            most = f"at most {limit // MEBIBYTE} MiB"
            raise UnusableInput("", most, f"{status.st_size} bytes")
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFile from None
    except OSError as error:
        raise UnusableInput("", "a readable file", os_reason(error)) from None
    except UnusableInput:
        raise
    except ValueError as error:
        raise UnusableInput("", "a file name", quoted(str(error))) from None


def read_text(
    path: FilePath, *, limit: int, opening: Callable[[str], None] = lambda _text: None
) -> str:
    """The UTF-8 text of a file of at most ``limit`` bytes; a byte order mark is dropped.

    ``opening`` sees the text of the first ``OPENING_BYTES`` and may refuse it by raising before
    the rest is read. Raises ``UnusableInput`` for a file that is missing, too large, binary or
    not UTF-8.
    """
    with about(path), open_input(path, limit=limit) as stream:
        first = stream.read(OPENING_BYTES)
        opening(decode(first, final=False))
        # A read makes room for all that it may get.
        rest = os.fstat(stream.fileno()).st_size - len(first)
        return decode(first + stream.read(max(0, rest)))


def read_lines(path: FilePath, *, limit: int, line_limit: int) -> Iterator[str]:
    """The lines of a UTF-8 file one at a time, without line ends, each at most ``line_limit``
    bytes.

    Raises ``UnusableInput`` as ``read_text`` does, and for a longer line before reading all of it.
    """
    with about(path), open_input(path, limit=limit) as stream:
        decode(stream.read(OPENING_BYTES), final=False)
        stream.seek(0)
        row = 0
        while line := stream.readline(line_limit + 1):
            row += 1
            if len(line) > line_limit:
                most = f"at most {line_limit // MEBIBYTE} MiB in a row"
                raise UnusableInput(f"row {row}", most, "a longer one")
            yield decode(line, first=row == 1).rstrip("\r\n")


def decode(content: bytes, *, final: bool = True, first: bool = True) -> str:
    """UTF-8 text of ``content``; with ``final`` false its last character may be cut short.

    ``first`` says that this is the beginning of the file, where a byte order mark is dropped.
    """
    zero = content.find(0)
    if zero >= 0:
        raise UnusableInput("", "UTF-8 text", f"a zero byte at offset {zero} (binary)")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(content, final)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        raise UnusableInput("", "UTF-8 text", byte) from None
    return text.removeprefix("\ufeff") if first else text


def write_text(path: FilePath, text: str) -> None:
    """Write a file of text as ``write_bytes`` does. Raises ``UnusableInput`` likewise."""
    with about(path):
        try:
            content = text.encode("utf-8")
        except UnicodeError:
            raise UnusableInput("", "UTF-8 text to write", "half a character") from None
        write_bytes(path, content)


def write_bytes(path: FilePath, content: bytes) -> Path:
    """Write a file whole: to a temporary file beside it first, then by one rename.

    Whatever fails, an existing file keeps its content; it keeps its mode in any case. A link is
    followed. Returns the path; raises ``UnusableInput`` where the file cannot be written.
    """
    with about(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            found = "a folder" if target.is_dir() else "a device or a pipe"
            raise UnusableInput("", "a regular file to write", found)
        if not target.parent.is_dir():
            raise UnusableInput("", "a file in a folder", f"no folder {Path(path).parent}")
        try:
            _replace(target, content)
        except OSError as error:
            raise UnusableInput("", "a file that can be written", os_reason(error)) from None
    return Path(path)


def _replace(target: Path, content: bytes) -> None:
    import secrets

    temporary = target.with_name(f".bubbleproof-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            keep_mode(target, temporary)  # before there is anything to read in it
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # else a power cut after the rename leaves an empty file
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def keep_mode(target: FilePath, new: FilePath) -> None:
    """Let ``new``, which replaces ``target``, be read and written by the same people."""
    with suppress(FileNotFoundError):
        os.chmod(new, stat.S_IMODE(os.stat(target).st_mode))


def os_reason(error: OSError) -> str:
    """What the system says of a file, in lower case."""
    return (error.strerror or type(error).__name__).lower()
