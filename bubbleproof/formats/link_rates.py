"""Bandwidths of a problem file: memory units per tick, or text such as ``300 GB/s``."""

from __future__ import annotations

import re
from fractions import Fraction

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.memory_sizes import UNITS
from bubbleproof.formats.problem_file_layout import NaturalSize

TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_RATE = re.compile(r"(\d{1,16}(?:\.\d{1,16})?) ?([A-Za-z]{1,4})/s", re.ASCII)
_SIZES: dict[str, Fraction] = {name: Fraction(size) for name, size in UNITS.items()} | {
    f"{prefix}bit": Fraction(1000**power, 8) for power, prefix in enumerate("kMGT", start=1)
}


def bandwidth(
    where: str, given: NaturalSize | None, *, unit: str, in_bytes: bool
) -> int | Fraction | None:
    """Memory units per tick; ``where`` is the key.

    Raises ``UnusableInput`` for a bandwidth of 0, text that is no rate, and a rate where memory is
    not counted in bytes or ticks are no unit of time.
    """
    if given is None:
        return None
    if not isinstance(given, str):
        if not given:
            raise UnusableInput(where, "a bandwidth above 0 (absent: no limit)", "0")
        return given
    if not in_bytes or unit not in TICKS_PER_SECOND:
        units = ", ".join(f'"{name}"' for name in TICKS_PER_SECOND)
        expected = f'a whole number (rates need memory_unit = "bytes" and unit one of {units})'
        raise UnusableInput(where, expected, quoted(given))
    match = _RATE.fullmatch(given)
    if match is None or match[2] not in _SIZES or not Fraction(match[1]):
        raise UnusableInput(where, 'a rate such as "300 GB/s" or "200 Gbit/s"', quoted(given))
    return Fraction(match[1]) * _SIZES[match[2]] / TICKS_PER_SECOND[unit]
