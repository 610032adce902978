"""Claims in a schedule file: each under the name of a measure, in that measure's type.

A count is a whole number, a ratio ``"a/b"``, a list one whole number per rank. A string claim reads
back as the ``Fraction`` it writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction

from bubbleproof.formats.errors import UnusableInput, quoted, unknown_key
from bubbleproof.formats.validation import LARGEST, Whole, where
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Claim

ClaimLayout = Whole | str | list[Whole]

_RATIO = re.compile(r"-?\d{1,30}/\d{1,30}", re.ASCII)
_TYPES = {field.name: str(field.type) for field in fields(Measures)}
_EXPECTED = {
    "int": "a whole number",
    "Fraction": 'a whole number or a ratio "a/b"',
    "tuple[int, ...]": "a list of whole numbers",
}


def claims_from_layout(layout: Mapping[str, ClaimLayout]) -> dict[str, Claim]:
    """The claims of a file. Raises ``UnusableInput`` for an unknown measure or another type."""
    return {name: _read(name, value) for name, value in layout.items()}


def claims_to_json(claims: Mapping[str, Claim]) -> dict[str, ClaimLayout]:
    """The claims as they are written. Raises ``UnusableInput`` for what a reader would refuse."""
    written = {name: _write(value) for name, value in claims.items()}
    claims_from_layout(written)
    return written


def _read(name: str, value: ClaimLayout) -> Claim:
    if name not in _TYPES:
        raise unknown_key("claims", name, _TYPES)
    wanted = _TYPES[name]
    match value:
        case int() if wanted != "tuple[int, ...]":
            return value
        case str() if wanted == "Fraction" and _is_ratio(value):
            return Fraction(value)
        case list() if wanted == "tuple[int, ...]":
            return tuple(value)
    raise UnusableInput(where(["claims", name]), _EXPECTED[wanted], quoted(value))


def _is_ratio(text: str) -> bool:
    return bool(_RATIO.fullmatch(text)) and int(text.partition("/")[2]) > 0


def _write(value: Claim) -> ClaimLayout:
    match value:
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case tuple():
            return list(value)
        case int() if abs(value) > LARGEST:
            return str(value)
    return value
