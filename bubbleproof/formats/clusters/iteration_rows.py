"""Rows of iterations in CSV files; the columns are told in ``costs.times.job_rows``."""

from __future__ import annotations

from bubbleproof.costs.times.job_rows import JobRow, rows_of
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.printable import on_one_line


def read_rows(path: FilePath, *, measured: bool) -> list[JobRow]:
    """The rows of a file; their measured column is looked at only where that is asked for.

    Raises ``ValueError`` with one line that names the file and the row.
    """
    text = read_text(path, limit=16 * MEBIBYTE)
    try:
        return rows_of(text, measured=measured)
    except ValueError as error:
        raise ValueError(f"{path}: {on_one_line(str(error))}") from None  # a cell may have lines
