"""What a command writes when its work is done: whether it can be, beforehand, and all or nothing.

Options that name it are marked, and the door of every command asks
``require_targets`` before the command begins. What is written comes together at the end
(``written_together``), missing folders included.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import MEBIBYTE, decode, keep_mode, os_reason, write_bytes
from bubbleproof.formats.format_table import ending_of, listed
from bubbleproof.parallel import postponed
from bubbleproof.platforms import sync_folder

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
    folder = TemporaryDirectory(prefix="bubbleproof-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / f"standard-input{ending_of(text)}"
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


@contextmanager
def written_together(folder: str | None, *files: str | None) -> Iterator[tuple[Path, ...]]:
    """Where to write what ``folder`` gets, and what becomes each of ``files``; None gets nothing.

    All get it at the end of the block, a file where there is one to be had. Where a writer refuses,
    nothing is touched, and the refusal names the place that was meant.
    """
    meant = [Path(each).absolute() for each in (folder, *files) if each is not None]
    if not meant:
        yield (Path(), *(Path() for _ in files))
        return
    there = next((p for p in meant[0].parents if p.is_dir()), None)
    with _beside(there) as temporary:
        new_folder = temporary / "folder"
        new_files = [temporary / str(n) / Path(f or "none").name for n, f in enumerate(files)]
        for each in (new_folder, *(new.parent for new in new_files)):
            each.mkdir()
        names = {str(new): str(f) for new, f in zip(new_files, files, strict=True) if f is not None}
        names[str(new_folder)] = str(folder)
        try:
            yield (new_folder, *new_files)
        except UnusableInput as error:
            for path, name in names.items():
                error.subject = error.subject.replace(path, name)
            raise
        moves: list[tuple[Path, str]] = []
        if folder is not None:
            make_folder(str(Path(folder) / "file"))
            moves += [(new, str(Path(folder) / new.name)) for new in sorted(new_folder.iterdir())]
        for new, file in zip(new_files, files, strict=True):
            if file is not None and new.exists():
                make_folder(file)
                moves.append((new, file))
        before = temporary / "before"
        before.mkdir()
        with postponed():  # a Ctrl-C between two of them waits for the others
            _put_all(moves, before)


@contextmanager
def _beside(folder: Path | None) -> Iterator[Path]:
    """A temporary folder within another one."""
    try:
        temporary = TemporaryDirectory(prefix=".bubbleproof-", dir=folder)
    except OSError as error:
        expected = "a folder that can be written into"
        raise UnusableInput("", expected, os_reason(error), str(folder)) from None
    with temporary as name:
        yield Path(name)


def _put_all(moves: Iterable[tuple[Path, str]], before: Path) -> None:
    """Put each new file in its place; where one cannot be, what was there before is put back."""
    done: list[tuple[Path, str]] = []
    try:
        for number, (new, target) in enumerate(moves):
            kept = before / str(number)
            _keep(target, kept)
            done.append((kept, target))
            _put(new, target)
    except BaseException:
        for kept, target in reversed(done):
            if kept.exists():
                _put(kept, target)
            else:
                Path(os.path.realpath(target)).unlink(missing_ok=True)
        raise
    for folder in {os.path.dirname(os.path.realpath(target)) for _, target in done}:
        sync_folder(folder)


def _keep(target: str, kept: Path) -> None:
    """Keep what is there; nothing is where a link leads to no file."""
    if not os.path.exists(target):
        return
    try:
        shutil.copy2(target, kept)
    except OSError as error:
        expected = "a file that can be read, to put back should another fail"
        raise UnusableInput("", expected, os_reason(error), target) from None


def _put(new: Path, target: str) -> None:
    """Let a new file be the target, by a rename where that can be."""
    try:
        keep_mode(target, new)
        os.replace(new, os.path.realpath(target))
    except OSError:  # on another disk, or it says why not
        write_bytes(target, new.read_bytes())


def make_folder(target: str) -> None:
    """Make the folder of ``target`` where it is missing; ``UnusableInput`` where that fails."""
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = os_reason(error)
        raise UnusableInput("", "a folder that can be made", reason, target) from None
