"""What a command writes when its work is done (``-o``): whether it can be, beforehand, and how
several files are written together or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import os_reason, write_bytes


def require_writable(targets: Iterable[str]) -> None:
    """Raise ``UnusableInput`` where a target is no file or its folder takes none.

    Folders that are missing do no harm: ``make_folder`` makes them. A full disk is seen only when
    the file is written.
    """
    for target in targets:
        with about(target):
            _require_writable(Path(target))


def _require_writable(path: Path) -> None:
    if path.exists() and not path.is_file():
        found = "a folder" if path.is_dir() else "a device or a pipe"
        raise UnusableInput("", "a regular file to write", found)
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir():
        raise UnusableInput("", "a file in a folder", f"{there}, which is none")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UnusableInput("", "a file that can be written", f"{there} is read-only")


def require_folder(target: str) -> None:
    """Raise ``UnusableInput`` where a target is no folder and none can be made there."""
    path = Path(target).absolute()
    there = next(each for each in (path, *path.parents) if each.exists())
    if not there.is_dir():
        raise UnusableInput("", "a folder to write into", f"{there}, which is none", target)
    if not os.access(there, os.W_OK | os.X_OK):
        found = f"{there} is read-only"
        raise UnusableInput("", "a folder that can be written into", found, target)


@contextmanager
def written_together(folder: str | None, file: str | None) -> Iterator[tuple[Path, Path]]:
    """Where to write what ``folder`` gets, and what becomes ``file``; None gets nothing.

    Both get it at the end of the block. Where a writer refuses, neither is touched, and the
    refusal names the place that was meant.
    """
    if folder is None and file is None:
        yield Path(), Path()
        return
    meant = [Path(each).absolute() for each in (folder, file) if each is not None]
    there = next((p for path in meant[:1] for p in path.parents if p.is_dir()), None)
    with TemporaryDirectory(prefix=".bubbleproof-", dir=there) as temporary:
        new_folder, new_file = Path(temporary) / "folder", Path(temporary) / "file.json"
        new_folder.mkdir()
        try:
            yield new_folder, new_file
        except UnusableInput as error:
            subject = error.subject.replace(str(new_folder), str(folder))
            error.subject = subject.replace(str(new_file), str(file))
            raise
        if folder is not None:
            make_folder(str(Path(folder) / "file"))
            for each in sorted(new_folder.iterdir()):
                os.replace(each, Path(folder) / each.name)
        if file is not None:
            make_folder(file)
            write_bytes(file, new_file.read_bytes())


def make_folder(target: str) -> None:
    """Make the folder of ``target`` where it is missing; ``UnusableInput`` where that fails."""
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = os_reason(error)
        raise UnusableInput("", "a folder that can be made", reason, target) from None
