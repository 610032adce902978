"""What a command writes when its work is done: whether it can be, beforehand, and all or nothing.

Options that name it are marked, and the door of every command asks
``require_targets`` before the command begins. What is written comes together at the end
(``written_together``).
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import MEBIBYTE, decode, os_reason
from bubbleproof.formats.format_table import ending_of, listed

LARGEST_INPUT = 256 * MEBIBYTE


class Target(Enum):
    """What an option names that its command writes: the mark beside its ``Option``."""

    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Ends:
    """How the name of what is written ends, another mark; ``what`` it is, as in "the page"."""

    what: str
    endings: tuple[str, ...]

    def require(self, target: str) -> None:
        """Raise ``ValueError`` for a name that ends otherwise."""
        if not target.endswith(self.endings):
            raise ValueError(f"{self.what} must end in {listed(self.endings)}, got {target!r}")


def require_targets(targets: Iterable[tuple[Target, str]]) -> None:
    """Raise ``UnusableInput`` where a target cannot be written, or two are one place.

    Folders that are missing do no harm: they are made. A full disk is seen only when a file is
    written.
    """
    met: set[str] = set()
    for kind, target in targets:
        with about(target):
            try:
                _require(kind, target)
                place = os.path.realpath(target)
            except (OSError, ValueError) as error:
                if isinstance(error, UnusableInput):
                    raise
                why = os_reason(error) if isinstance(error, OSError) else str(error)
                raise UnusableInput("", "a name that can be written", why) from None
            if place in met:
                raise UnusableInput("", "a place of its own for each output", "two outputs there")
            met.add(place)


def require_writable(targets: Iterable[str]) -> None:
    """``require_targets`` for files."""
    require_targets((Target.FILE, target) for target in targets)


def require_folder(target: str) -> None:
    """``require_targets`` for one folder."""
    require_targets([(Target.FOLDER, target)])


def _require(kind: Target, target: str) -> None:
    path = Path(os.path.realpath(target))
    if kind is Target.FILE and (os.path.lexists(path) and not path.is_file()):
        found = "a folder" if path.is_dir() else "a device or a pipe"
        raise UnusableInput("", "a regular file to write", found)
    folders = path.parents if kind is Target.FILE else (path, *path.parents)
    there = next(folder for folder in folders if os.path.lexists(folder))
    what = "a file in a folder" if kind is Target.FILE else "a folder to write into"
    if not there.is_dir():
        raise UnusableInput("", what, f"{there}, which is none")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UnusableInput("", f"{what} that can be written", f"{there} is read-only")
    with suppress(FileNotFoundError):
        os.lstat(there / path.name)  # a name that is too long says so


@cache
def copy_of_standard_input() -> str:
    """A file with what comes on the standard input, named by its format until the program ends.

    Raises ``UnusableInput`` for what is no text, or more than any format takes.
    """
    with about("standard input"):
        text = decode(sys.stdin.buffer.read(LARGEST_INPUT + 1))
        if len(text) > LARGEST_INPUT:
            raise UnusableInput("", f"at most {LARGEST_INPUT // MEBIBYTE} MiB", "more")
    return kept_file(f"standard-input{ending_of(text)}", text)


def kept_file(name: str, text: str) -> str:
    """A file of that name with the text, until the program ends."""
    from tempfile import TemporaryDirectory

    folder = TemporaryDirectory(prefix="bubbleproof-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)
