"""Whether the words of ``verify`` name several schedules, and which files they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bubbleproof.commands.inputs import SUFFIXES
from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import PLAN_NAME, SCHEDULE_NAME


def is_many(words: Sequence[str], request: VerifyRequest) -> bool:
    """Whether this asks for several schedules, or for files about one."""
    if request.junit is not None or request.sarif is not None:
        return True
    if len(words) == 1:
        return _is_folder_of_files(words[0])
    return all(word.lower().endswith(SUFFIXES) or Path(word).is_dir() for word in words)


def schedules_of(words: Sequence[str]) -> list[list[str]]:
    """The words of each schedule: a file each, those of folders, or one family's.

    Raises ``UnusableInput`` for a folder without any.
    """
    if not (words[0].lower().endswith(SUFFIXES) or Path(words[0]).is_dir()):
        return [list(words)]
    found = [[name] for word in words for name in _files_of(word)]
    if not found:
        expected = "a table (.csv) or a schedule (.json) in it or below"
        raise UnusableInput("", expected, "none", words[0])
    return found


def _is_folder_of_files(word: str) -> bool:
    folder = Path(word)
    names = (SCHEDULE_NAME, PLAN_NAME)
    return folder.is_dir() and not any((folder / name).is_file() for name in names)


def _files_of(word: str) -> Iterator[str]:
    if not _is_folder_of_files(word):
        yield word
        return
    for path in sorted(Path(word).rglob("*")):
        suffix = path.suffix.lower()
        if path.is_file() and (suffix == ".csv" or (suffix == ".json" and _says_schedule(path))):
            yield str(path)


def _says_schedule(path: Path) -> bool:
    """Whether a JSON file says near its beginning that it is a schedule."""
    from bubbleproof.formats.schedule_json import FORMAT

    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)
