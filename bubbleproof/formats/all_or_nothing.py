"""All that is written comes together when a block ends, missing folders included, or nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import keep_mode, os_reason, write_bytes
from bubbleproof.platforms import sync_folder


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
        from bubbleproof.parallel import postponed

        with postponed():  # a Ctrl-C between two of them waits for the others
            _put_all(moves, before)


@contextmanager
def _beside(folder: Path | None) -> Iterator[Path]:
    """A temporary folder within another one."""
    from tempfile import TemporaryDirectory

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
