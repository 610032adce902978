"""The cases of a claim: one ``Domain``, generated when first asked for, smallest first.

A case gives each parameter a value. Cases are ordered by the sum of their values, then by the
values in the order in which the parameters are named. They are kept as one array of numbers, so
that a hundred thousand of them are cheap; a case becomes a mapping only when it is looked at.

``domain`` makes one of columns, whose values may depend on what stands before them; ``scope`` makes
those of schedules: a small one for every day and, as its ``wide``, one for an audit. p ranks go
from 2 up to 16, every one (one rank is no pipeline), m microbatches up to 4p: every one up to 2p
and, beyond, those around the multiples of p; v chunks up to 4, s slices up to 8, durations are
ratios tF:tB, of which the small domain takes the first three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast, overload

import numpy as np

from bubbleproof.papers.formula import Formula

Params = Mapping[str, int]
CaseValues = tuple[int, ...]
Values = Iterable[int] | Iterable[CaseValues]  # rows where a column names several parameters
Chooser = Callable[[Params], Values]
Choice = Values | Chooser | str  # a formula
Words = tuple[str, Choice]  # what is said of a column, and its values
Condition = Callable[[Params], bool]
CaseTable = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Ratios = Sequence[tuple[int, int]]
Ranges = tuple[Iterable[int], Iterable[int]]  # the values of the small and of the wide domain

RANKS = range(2, 17)
SMALL_RANKS = (2, 3, 4, 5)
CHUNKS = (1, 2, 3, 4)
SLICES = (1, 2, 3, 4, 8)
RATIOS = ((1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 5))  # (tF, tB)


class Points(Sequence[Params]):
    """Cases with the same parameters ``names``; ``rows`` is called once, on the first look.

    They stand smallest first. Raises ``ValueError`` on the first look when a case is there twice.
    """

    def __init__(self, names: Iterable[str], rows: Callable[[], Iterable[CaseValues]]) -> None:
        self.names, self._generate = tuple(names), rows
        self._table: CaseTable | None = None

    @property
    def table(self) -> CaseTable:
        """One row of values per case, shape (cases, parameters)."""
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """The cases of a claim: ``text`` for people, ``points`` for the machine.

    ``columns`` and ``where`` are what they were made of. ``wide``, where there is one, holds these
    cases and more, for an audit.
    """

    text: str
    points: Points
    columns: Mapping[str, Choice]
    where: Condition
    wide: Domain | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of every case, in their order."""
        return self.points.names

    @property
    def table(self) -> CaseTable:
        """The values of every case, shape (cases, parameters), in the order of ``points``."""
        return self.points.table

    def widened(self, text: str, **columns: Choice) -> Domain:
        """This domain, with a wide one that has these columns in place of its own."""
        return replace(self, wide=domain(text, {**self.columns, **columns}, where=self.where))


def is_any(at: Params) -> bool:
    """Every case."""
    del at
    return True


def domain(
    text: str,
    columns: Mapping[str, Choice] | None = None,
    *,
    where: Condition | str = is_any,
    wide: Domain | None = None,
    **named: Choice,
) -> Domain:
    """Every combination of the columns' values that ``where`` accepts.

    A column names one parameter, or several (``tF_tB``), whose values are rows. Values may be a
    function or a formula of the parameters before.

    >>> pairs = domain("p = 2 3, m < p", p=(2, 3), m="range(1, p)")
    >>> pairs.points[:]
    ({'p': 2, 'm': 1}, {'p': 3, 'm': 1}, {'p': 3, 'm': 2})
    """
    kept = {column: _kept(choice) for column, choice in {**(columns or {}), **named}.items()}
    names = [name for column in kept for name in column.split("_")]
    accepts = cast("Condition", Formula(where)) if isinstance(where, str) else where

    def rows() -> Iterator[CaseValues]:
        for row in _combined(names, list(kept.values()), ()):
            if accepts is is_any or accepts(dict(zip(names, row, strict=True))):
                yield row

    return Domain(text=text, points=Points(names, rows), columns=kept, where=accepts, wide=wide)


def case(text: str, **values: int) -> Domain:
    """One case."""
    return domain(text, {name: (value,) for name, value in values.items()})


def _kept(choice: Choice) -> Choice:
    """The values, for more than one look, or what gives them."""
    if isinstance(choice, str):
        return cast("Chooser", Formula(choice))
    return choice if callable(choice) else cast("Values", tuple(choice))


def _combined(
    names: Sequence[str], choices: Sequence[Choice], begun: CaseValues
) -> Iterator[CaseValues]:
    """The rows that go on from ``begun``, which has the values of the columns before."""
    if not choices:
        yield begun
        return
    first = cast("Values | Chooser", choices[0])
    for value in first(dict(zip(names, begun, strict=False))) if callable(first) else first:
        own = value if isinstance(value, tuple) else (value,)
        yield from _combined(names, choices[1:], (*begun, *own))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """The m that are looked at on p ranks, in words and in numbers."""

    text: str
    of: Callable[[int], Iterable[int]]


def counts(p: int) -> tuple[int, ...]:
    """The microbatches looked at on p ranks, ascending.

    >>> counts(4)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16)
    """
    beyond = (2 * p + 1, 3 * p - 1, 3 * p, 3 * p + 1, 4 * p - 1, 4 * p)
    return tuple(sorted({*range(1, 2 * p + 1), *(m for m in beyond if m <= 4 * p)}))


SOME = Counts(text="m <= 4p (all up to 2p, then 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p)", of=counts)
EVERY = Counts(text="m <= 4p", of=lambda p: range(1, 4 * p + 1))
COUNTS_TEXT = f"2 <= p <= 16, {SOME.text}"


def scope(
    condition: str,
    where: Condition | str = is_any,
    *,
    ranks: Ranges = (SMALL_RANKS, RANKS),
    looked_at: Counts = SOME,
    ratios: Ratios = RATIOS,
    **others: Ranges,
) -> Domain:
    """The cases that meet the condition, which ``condition`` says in words, on few and on all p."""

    def sized(size: int, ratios: Ratios) -> tuple[str, dict[str, Choice]]:
        """The words of the columns with the condition, and their values."""
        parts: dict[str, Words] = {
            "p": among("p", ranks[size]),
            "m": (looked_at.text, lambda at: looked_at.of(at["p"])),
            **{name: among(name, values[size]) for name, values in others.items()},
            **({"tF_tB": (ratios_text(ratios), ratios)} if ratios else {}),
        }
        words = (text for text, _ in parts.values() if text)
        return "; ".join([*words, condition]), {name: each for name, (_, each) in parts.items()}

    text, columns = sized(0, ratios[:3])
    wide_text, wide_columns = sized(1, ratios)
    return domain(text, columns, where=where).widened(wide_text, **wide_columns)


def among(name: str, values: Iterable[int]) -> Words:
    """A parameter's values, and their words."""
    values = tuple(values)
    return f"{name} in {spelled(values)}", values


def ratios_text(ratios: Ratios) -> str:
    """The ratios in words.

    >>> ratios_text(RATIOS[:2])
    'tF:tB in 1:1 1:2'
    """
    return f"tF:tB in {' '.join(f'{forward}:{backward}' for forward, backward in ratios)}"


def spelled(values: Iterable[int]) -> str:
    """The values in a row; ``1..16`` where they are many neighbours.

    >>> spelled((1, 2, 5)), spelled(range(1, 17))
    ('1 2 5', '1..16')
    """
    values = tuple(values)
    if len(values) > 3 and values == tuple(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return " ".join(map(str, values))
