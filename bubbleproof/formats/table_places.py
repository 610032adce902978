"""Where the actions of a PyTorch table stand in its file, for tools that mark the place in it.

Rows, columns and characters count from 1, as in editors. An action that stands twice is found at
its first cell; one that the table has not, nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bubbleproof.formats.files import FilePath, read_lines
from bubbleproof.formats.pytorch_csv import (
    ROW_LIMIT,
    SIZE_LIMIT,
    Dialect,
    read_table,
    with_cells,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """A cell: its row and column, and the characters ``first`` to ``last`` (exclusive) of the line.

    >>> cell = TablePlace(row=2, column=3, first=9, last=12)
    >>> print(cell)
    row 2, column 3
    """

    row: int
    column: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column}"


def table_places(path: FilePath, dialect: Dialect | None = None) -> dict[str, TablePlace]:
    """The first cell of each action of a table, by the action's text (in the new dialect).

    Raises ``UnusableInput`` as ``read_table`` does.
    """
    table = read_table(path, dialect=dialect)
    orders = with_cells(table.program, table.collectives).orders(len(table.row_lengths))
    found: dict[str, TablePlace] = {}
    for row, line in enumerate(_lines(path)):
        cells = cells_of_line(line, row + 1)
        for action, (_, place) in zip(orders[row], cells, strict=True):
            found.setdefault(str(action), place)
    return found


def cells_of_line(line: str, row: int) -> list[tuple[str, TablePlace]]:
    """The cells of a line that are not empty, each with its place."""
    found, first = [], 1
    for column, text in enumerate(line.split(","), start=1):
        stripped = text.strip()
        if stripped:
            begin = first + len(text) - len(text.lstrip())
            place = TablePlace(row=row, column=column, first=begin, last=begin + len(stripped))
            found.append((stripped, place))
        first += len(text) + 1
    return found


def place_at(path: FilePath, row: int, column: int) -> TablePlace | None:
    """The cell in a row and column; None where there is none such."""
    for number, line in enumerate(_lines(path), 1):
        if number == row:
            places = [place for _, place in cells_of_line(line, row)]
            return next((place for place in places if place.column == column), None)
    return None


def _lines(path: FilePath) -> Iterator[str]:
    return read_lines(path, limit=SIZE_LIMIT, line_limit=ROW_LIMIT)
