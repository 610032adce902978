"""A file that the reader of ``serve``'s page opens: its text, read as the command reads a file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.commands.serving.offered_schedules import OfferedSchedule, offered_schedules
from bubbleproof.commands.serving.view_request import FileRequest
from bubbleproof.formats.printable import on_one_line

ENDINGS = (".json", ".csv", ".toml")


def opened_schedules(asked: FileRequest) -> list[OfferedSchedule]:
    """What the file offers, under the name that the reader gave it.

    Raises ``ValueError`` in one line that names the file for what is no schedule and no problem.
    """
    name = on_one_line(asked.name)
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{name}: expected a file ending in {' '.join(ENDINGS)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"opened{ending}"
        path.write_text(asked.text, encoding="utf-8", newline="")
        try:
            found = offered_schedules([str(path)])
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from None
    stem = Path(name).stem
    return [one.renamed(stem if one.name == "opened" else f"{stem}: {one.name}") for one in found]
