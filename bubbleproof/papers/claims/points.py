"""The cases of a claim: generated when first asked for, in the order of counterexamples.

A case gives each parameter a value. Cases are ordered by the sum of their values, then by the
values in the order in which the parameters are named. They are kept as one array of numbers, so
that a hundred thousand of them are cheap; a case becomes a mapping only when it is looked at.

``grid`` takes every combination of ranges that a condition accepts; ``listed`` takes given rows.
Neither computes anything before the cases are counted, looked at or iterated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import overload

import numpy as np

Params = Mapping[str, int]
Row = tuple[int, ...]


class Points(Sequence[Params]):
    """Cases with the same parameters ``names``; ``rows`` is called once, on the first look.

    Raises ``ValueError`` on the first look when a case is there twice.
    """

    def __init__(self, names: Iterable[str], rows: Callable[[], Iterable[Row]]) -> None:
        self.names = tuple(names)
        self._generate = rows
        self._table: np.ndarray[tuple[int, int], np.dtype[np.int64]] | None = None

    @property
    def table(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """One row of values per case, smallest first, shape (cases, parameters)."""
        if self._table is None:
            rows = np.array(list(self._generate()), dtype=np.int64).reshape(-1, len(self.names))
            columns = [rows[:, i] for i in reversed(range(len(self.names)))]
            table = rows[np.lexsort([*columns, rows.sum(axis=1)])]
            if len(table) > 1 and (table[1:] == table[:-1]).all(axis=1).any():
                raise ValueError(f"a case of {' '.join(self.names)} is there twice")
            self._table = table
        return self._table

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> Params: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Params, ...]: ...
    def __getitem__(self, index: int | slice) -> Params | tuple[Params, ...]:
        if isinstance(index, slice):
            return tuple(map(self._point, self.table[index].tolist()))
        return self._point(self.table[index].tolist())

    def __iter__(self) -> Iterator[Params]:
        return (self._point(row.tolist()) for row in self.table)

    def _point(self, row: list[int]) -> Params:
        return dict(zip(self.names, row, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The cases of a claim: ``text`` for people, ``points`` for the machine, smallest first."""

    text: str
    points: Sequence[Params]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of every case, in their order; empty where there is no case.

        Raises ``ValueError`` when the cases have different ones.
        """
        if isinstance(self.points, Points):
            return self.points.names
        found = {tuple(point) for point in self.points}
        if len(found) > 1:
            raise ValueError(f"the cases of ({self.text}) name different parameters: {found}")
        return next(iter(found), ())

    @property
    def table(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """The values of every case, shape (cases, parameters), in the order of ``points``."""
        if isinstance(self.points, Points):
            return self.points.table
        rows = [tuple(point.values()) for point in self.points]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names))


def grid(
    text: str, *, where: Callable[[Params], bool] | None = None, **ranges: Iterable[int]
) -> Domain:
    """Every combination of the ranges that ``where`` accepts, ordered by (sum, values)."""
    columns = {name: tuple(values) for name, values in ranges.items()}

    def rows() -> Iterator[Row]:
        combined = product(*columns.values())
        if where is None:
            return combined
        return (row for row in combined if where(dict(zip(columns, row, strict=True))))

    return Domain(text=text, points=Points(columns, rows))


def listed(text: str, names: Iterable[str], rows: Callable[[], Iterable[Row]]) -> Domain:
    """The cases whose values ``rows()`` yields in any order; for ranges that hang together."""
    return Domain(text=text, points=Points(names, rows))


def size(params: Params) -> tuple[int, Row]:
    """The order of counterexamples: sum first, then the values as named."""
    return sum(params.values()), tuple(params.values())
