"""Columns of numbers as text that a page's script reads back as typed arrays.

All columns of a picture stand one after another, each from a multiple of eight bytes, compressed
(zlib) and in base64. ``places`` says of each its type, where it begins (bytes) and its length
(numbers); where ``steps`` is true the differences of neighbours are kept in place of the numbers,
which regular schedules make small. Types are ``u1``, ``i2``, ``i4`` and ``f8``, little-endian: the
narrowest that holds a column. Whole numbers from 2**53 on have no exact place in a page's script;
they are rounded to the nearest that has.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bubbleproof.theory.model.actions import Ints

_TYPES = (("u1", 0, 1 << 8), ("i2", -(1 << 15), 1 << 15), ("i4", -(1 << 31), 1 << 31))
_ALIGNED = 8  # bytes
_LEVEL = 6  # of zlib: 9 takes three times as long for a hundredth less


class ColumnPlace(NamedTuple):
    """Where a column lies: its type, its first byte, how many numbers, and whether steps."""

    type: str
    first: int
    length: int
    steps: bool


class ColumnBlob:
    """Columns by name; ``text`` is all of them packed, ``places`` where each is."""

    def __init__(self) -> None:
        self.places: dict[str, ColumnPlace] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, column: Ints, *, steps: bool = False) -> None:
        """Pack one more column; ``steps`` keeps the differences of neighbours."""
        kept = np.diff(column, prepend=0) if steps else column
        kind = _narrowest(kept)
        content = kept.astype(f"<{kind}").tobytes()
        self.places[name] = ColumnPlace(kind, self._size, len(kept), steps)
        self._parts.append(content + bytes(-len(content) % _ALIGNED))
        self._size += len(self._parts[-1])

    @property
    def text(self) -> str:
        """All columns."""
        return _packed(b"".join(self._parts))


def packed_lines(lines: Sequence[str]) -> str:
    """Lines of text, none with a break in it, packed like columns."""
    return _packed("\n".join(lines).encode())


def unpacked_lines(text: str) -> list[str]:
    """The lines as they were."""
    content = zlib.decompress(b64decode(text)).decode()
    return content.split("\n") if content else []


def _packed(content: bytes) -> str:
    return b64encode(zlib.compress(content, _LEVEL)).decode()


def unpacked(text: str, place: ColumnPlace) -> Ints:
    """One column as it was: what a page's script does, for tests and other readers."""
    content = zlib.decompress(b64decode(text))
    kept = np.frombuffer(content, f"<{place.type}", place.length, place.first).astype(np.int64)
    return np.cumsum(kept) if place.steps else kept


def _narrowest(column: Ints) -> str:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return next((kind for kind, least, most in _TYPES if least <= low and high < most), "f8")
