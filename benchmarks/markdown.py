"""Markdown tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

LONGEST_CELL = 240
CLOCK = """\
Each had a limit of seconds: what is found, closed or left open depends on the machine and on what
else ran there."""  # on every page whose numbers depend on a clock


def released(name: str, versions: Mapping[str, str]) -> str:
    """A package with its release, as a title tells it.

    >>> released("torch", {"torch": "2.13.0+cpu"})
    'torch 2.13.0'
    """
    return f"{name} {versions[name].partition('+')[0]}"


def put_out(text: str, path: Path | None) -> None:
    """Write a page to a file, or print it where none is named."""
    if path is None:
        sys.stdout.write(text)
    else:
        from bubbleproof.formats.files import write_text  # mutants are made before it is imported

        write_text(path, text)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with one line per row."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """The text as it may stand in a cell: on one line, bars escaped, cut when long."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= LONGEST_CELL else line[:LONGEST_CELL] + " ..."
