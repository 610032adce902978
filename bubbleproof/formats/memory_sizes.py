"""Memory sizes of a problem file: whole numbers, or text such as ``80 GiB`` counted in bytes."""

from __future__ import annotations

import re
from fractions import Fraction

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.problem_file_layout import Size
from bubbleproof.formats.validation import LARGEST

UNITS = {"B": 1} | {
    f"{prefix}{suffix}": base**power
    for base, suffix, prefixes in ((1000, "B", "kMGT"), (1024, "iB", "KMGT"))
    for power, prefix in enumerate(prefixes, start=1)
}
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,16})?) ?([A-Za-z]{1,3})", re.ASCII)


def memory_sizes(name: str, given: Size | list[Size], in_bytes: bool) -> int | tuple[int, ...]:
    """The sizes under the key ``memory.<name>`` in the memory unit, one or several as given.

    Raises ``UnusableInput`` for text that is no whole number of bytes, or that has no place here.
    """
    where = f"memory.{name}"
    if isinstance(given, list):
        return tuple(
            memory_size(f"{where}[{index}]", value, in_bytes) for index, value in enumerate(given)
        )
    return memory_size(where, given, in_bytes)


def memory_rows(
    name: str, given: Size | list[Size] | list[list[Size]], in_bytes: bool
) -> int | tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """The sizes under ``memory.<name>``, which may also be rows. Raises as ``memory_sizes``."""
    if not isinstance(given, list) or not any(isinstance(row, list) for row in given):
        return memory_sizes(name, given, in_bytes)  # type: ignore[arg-type]  # no rows
    rows = [memory_sizes(f"{name}[{stage}]", row, in_bytes) for stage, row in enumerate(given)]
    return tuple(rows)  # type: ignore[return-value]  # the sizes of a list are a tuple


def memory_size(where: str, given: Size, in_bytes: bool) -> int:
    """One size in the memory unit; ``where`` is its key. Raises ``UnusableInput`` likewise."""
    if isinstance(given, int):
        return given
    if not in_bytes:
        expected = 'a whole number (units need memory_unit = "bytes")'
        raise UnusableInput(where, expected, quoted(given))
    match = _SIZE.fullmatch(given)
    if match is None or match[2] not in UNITS:
        raise UnusableInput(where, 'a size such as "80 GiB"', quoted(given))
    size = Fraction(match[1]) * UNITS[match[2]]
    if size.denominator != 1 or size > LARGEST:
        raise UnusableInput(where, f"a whole number of bytes up to {LARGEST}", quoted(given))
    return int(size)
