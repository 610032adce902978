"""Rows of iterations in CSV files; the columns are told in ``costs.times.job_rows``."""

from __future__ import annotations

from bubbleproof.costs.times.job_rows import Row, rows_of
from bubbleproof.formats.errors import about, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text


def read_rows(path: FilePath, *, measured: bool) -> list[Row]:
    """The rows of a file; their measured column is looked at only where that is asked for.

    Raises ``UnusableInput`` with one line that names the file and the row.
    """
    with about(path):
        text = read_text(path, limit=16 * MEBIBYTE)
        with values_at("rows"):
            return rows_of(text, measured=measured)
