"""Memory sizes and bandwidths of a problem file: whole numbers, or text such as ``80 GiB``.

Text is read where the file counts in units that it can be told in: a size where ``memory_unit`` is
``bytes``, a rate such as ``300 GB/s`` where in addition ``unit`` is one of time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.exact_numbers import LARGEST
from bubbleproof.formats.validation import Natural, Whole

TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_UNITS = {"B": 1} | {
    f"{prefix}{suffix}": base**power
    for base, suffix, prefixes in ((1000, "B", "kMGT"), (1024, "iB", "KMGT"))
    for power, prefix in enumerate(prefixes, start=1)
}
_RATES = {name: Fraction(size) for name, size in _UNITS.items()} | {
    f"{prefix}bit": Fraction(1000**power, 8) for power, prefix in enumerate("kMGT", start=1)
}
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,16})?) ?([A-Za-z]{1,3})", re.ASCII)
_RATE = re.compile(r"(\d{1,16}(?:\.\d{1,16})?) ?([A-Za-z]{1,4})/s", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a problem file counts in: the context of its validation."""

    unit: object
    memory_unit: object

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Units:
        """The units that a problem file states."""
        return cls(unit=content.get("unit"), memory_unit=content.get("memory_unit"))


def _size(text: str, info: ValidationInfo[Units]) -> int:
    """The bytes of a text. Raises ``UnusableInput`` for one that is no whole number of them."""
    if info.context.memory_unit != "bytes":
        expected = 'a whole number (units need memory_unit = "bytes")'
        raise UnusableInput("", expected, quoted(text))
    return bytes_of(text)


def bytes_of(text: str) -> int:
    """The bytes of a text such as ``80 GiB``. Raises ``UnusableInput`` for what is no such text.

    >>> bytes_of("4 GiB")
    4294967296
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        raise UnusableInput("", 'a size such as "80 GiB"', quoted(text))
    size = Fraction(match[1]) * _UNITS[match[2]]
    if size.denominator != 1 or size > LARGEST:
        raise UnusableInput("", f"a whole number of bytes up to {LARGEST}", quoted(text))
    return int(size)


def _rate(given: int | str, info: ValidationInfo[Units]) -> int | Fraction:
    """Memory units per tick. Raises ``UnusableInput`` for a bandwidth of 0 and what is no rate."""
    if isinstance(given, int):
        if not given:
            raise UnusableInput("", "a bandwidth above 0 (absent: no limit)", "0")
        return given
    unit = info.context.unit
    if info.context.memory_unit != "bytes" or unit not in TICKS_PER_SECOND:
        units = ", ".join(f'"{name}"' for name in TICKS_PER_SECOND)
        expected = f'a whole number (rates need memory_unit = "bytes" and unit one of {units})'
        raise UnusableInput("", expected, quoted(given))
    match = _RATE.fullmatch(given)
    if match is None or match[2] not in _RATES or not Fraction(match[1]):
        raise UnusableInput("", 'a rate such as "300 GB/s" or "200 Gbit/s"', quoted(given))
    return Fraction(match[1]) * _RATES[match[2]] / TICKS_PER_SECOND[unit]


Text = Annotated[str, AfterValidator(_size)]  # read as bytes
SizeInBytes = Annotated[str, AfterValidator(bytes_of)]  # read as bytes, whatever the file counts in
Size = Whole | Text
NaturalSize = Natural | Text
Rate = Annotated[Natural | str, AfterValidator(_rate)]  # read as memory units per tick
