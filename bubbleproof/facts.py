"""Facts: what a result says, stated once, of which every form that it takes is made.

A result is a ``FactSource``: its ``facts`` are all that it says, in the order in which people read
them. A table on a terminal or a page has the ``rows`` of those with a label; a JSON object is the
``tree`` of those with a key; ``broken`` are the sentences for what is not as it should be; a
notebook shows the rows, and ``to_frame`` has them for pandas. So a command prints a result, writes
its file and its page without knowing what the result is about, and what is new to say is one more
fact. ``reference_exec.evidence.replay_report`` is the first such result.

>>> found = [
...     Fact(key="peaks.measured", label="peak bytes", value=(8, 4), expected=(8, 5),
...          verdict=VIOLATED, detail=("rank 1 held 4 bytes, 5 were predicted",)),
...     Fact(key="peaks.allocator", value=()),
... ]
>>> rows(found)
[('peak bytes', '8 5', '8 4', 'violated')]
>>> tree(found)
{'peaks': {'measured': [8, 4], 'predicted': [8, 5], 'allocator': ()}}
>>> broken(found)
('rank 1 held 4 bytes, 5 were predicted',)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # it has no types of its own
    from _typeshed import DataclassInstance

HOLDS, VIOLATED = "holds", "violated"
UNDECIDABLE, NOT_ASKED = "undecidable", "not asked"
Kind = TypeVar("Kind")
FactCells = tuple[str, str, str, str]  # label, expected, value, verdict
MEASURED, PREDICTED = "measured", "predicted"  # how keys of a comparison end


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that a result says.

    ``key`` is its place in JSON, with dots; one without a key is no part of it, and of facts whose
    key ends in ``[]`` each is one more in a list. ``label`` says to people what it is; one without
    a label has no row. ``value`` is exact, in ``unit``, and ``expected`` what it was to be, which
    JSON has where the key ends in ``measured``; ``told`` and ``wanted`` say both in words, where
    their digits do not. ``verdict`` is a word such as ``holds``; ``detail`` has a sentence for each
    way in which the fact is not as it should be.
    """

    key: str = ""
    label: str = ""
    value: object = None
    unit: str = ""
    expected: object = None
    told: str = ""
    wanted: str = ""
    verdict: str = ""
    detail: tuple[str, ...] = ()

    @property
    def cells(self) -> FactCells:
        """What people read of it."""
        told, wanted = self.told or _text(self.value), self.wanted or _text(self.expected)
        return self.label, self._in_unit(wanted), self._in_unit(told), self.verdict

    def _in_unit(self, text: str) -> str:
        return f"{text} {self.unit}" if text and self.unit else text


class FactSource(ABC):
    """A result that states facts."""

    __slots__ = ()
    columns: ClassVar[FactCells] = ("evidence", "expected", "found", "verdict")

    @abstractmethod
    def facts(self) -> Iterable[Fact]:
        """All that it says."""

    def __eq__(self, other: object) -> bool:
        """Whether both are of one kind and hold the same, also from another process."""
        return type(other) is type(self) and _content(other) == _content(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def to_dict(self) -> dict[str, object]:
        """The object that ``--json`` prints; exact ratios are texts such as ``"1/3"``."""
        return {key: _plain(value) for key, value in tree(self.facts()).items()}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each fact with a label, by key and with the exact value."""
        import pandas

        (header, *cells), facts = self.table(), [fact for fact in self.facts() if fact.label]
        pairs = zip(facts, cells, strict=True)
        told = [(fact.key, *row, fact.value, fact.unit) for fact, row in pairs]
        return pandas.DataFrame(told, columns=["key", *header, "value", "unit"])

    def table(self) -> list[tuple[str, ...]]:
        """The header and the rows, of the columns in which any row has something."""
        cells = zip(self.columns, *rows(self.facts()), strict=True)
        return [*zip(*(column for column in cells if any(column[1:])), strict=True)] or [()]

    def _repr_html_(self) -> str:
        """The rows as a table, for notebooks."""
        head, *told = self.table()
        return (
            f"<table>{_html_row('th', head)}{''.join(_html_row('td', row) for row in told)}</table>"
        )


def verdict(is_so: bool) -> str:
    """The word for what holds or does not."""
    return HOLDS if is_so else VIOLATED


def rows(facts: Iterable[Fact]) -> list[FactCells]:
    """What people read: label, expected, found, verdict."""
    return [fact.cells for fact in facts if fact.label]


def tree(facts: Iterable[Fact]) -> dict[str, object]:
    """Values by key, one object within another at each dot; what is not finite is None.

    Raises ``ValueError`` for a key within the value of another fact.
    """
    found: dict[str, object] = {}
    for fact in facts:
        if fact.key:
            _put(found, fact.key, fact.value)
        group = fact.key.removesuffix(MEASURED)
        if group not in ("", fact.key):  # a group's measured value has its expected one beside it
            _put(found, group + PREDICTED, fact.expected)
    return found


def broken(facts: Iterable[Fact]) -> tuple[str, ...]:
    """The sentences for what is not as it should be."""
    return tuple(sentence for fact in facts for sentence in fact.detail)


def valued(group: str, **values: object) -> Iterator[Fact]:
    """Facts of a group that stand in JSON alone; those of no group ("") stand at the top."""
    return (Fact(key=f"{group}.{name}".lstrip("."), value=value) for name, value in values.items())


def keyed(**values: object) -> Iterator[Fact]:
    """Facts that stand in JSON alone."""
    return (Fact(key=key, value=value) for key, value in values.items())


def labelled(told: Mapping[str, str]) -> Iterator[Fact]:
    """Facts that people alone are told.

    Parameters
    ----------
    told
        What is told, by its label.
    """
    return (Fact(label=label, value=value) for label, value in told.items())


def _put(found: dict[str, object], key: str, value: object) -> None:
    *places, last = key.removesuffix("[]").split(".")
    for place in places:
        inner = found.setdefault(place, {})
        if not isinstance(inner, dict):
            raise ValueError(f"the fact {key} lies within the value of another")
        found = inner
    if key.endswith("[]"):
        value = *found.get(last, ()), value  # type: ignore[misc]  # a list holds what was put there
    found[last] = _finite(value)


def _finite(value: object) -> object:
    """A value as JSON can write it: a fraction as ``a/b``, None for what is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return [*map(_finite, value)] if type(value) is tuple and value else value


def fields_of(value: DataclassInstance) -> dict[str, object]:
    """The fields of a dataclass by name, as JSON has them."""
    return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}


def extended(kind: type[Kind], base: Any, **more: Any) -> Kind:
    """One of a dataclass, whose fields are as those of ``base`` by the same names, and more."""
    names = {each.name for each in fields(base)} & {each.name for each in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: getattr(base, name) for name in names} | more)


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, Fraction):
        return ratio(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def ratio(value: Fraction) -> str:
    """A ratio as ``a/b``, also when it is whole."""
    return f"{value.numerator}/{value.denominator}"


def _content(value: object) -> object:
    """A value with the fields of dataclasses and the numbers of arrays, to compare."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), [_content(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return {key: _content(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_content, value)]
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: object) -> str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _html_row(kind: str, cells: Sequence[str]) -> str:
    from html import escape

    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
