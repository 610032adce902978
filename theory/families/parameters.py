"""Family parameters: the short names of the command line, read and checked.

Symbols: ``p`` ranks, ``m`` microbatches, ``v`` chunks per rank, ``s`` slices, ``f`` forwards before
the first backward, ``G`` microbatches of a group, ``R`` per cent of a rank's layers that are
recomputed, ``e``/``d`` enqueue and dequeue sequences, ``tF tB tI tW`` ticks of one action at the
schedule's own granularity (defaults 1, 2, 1, 1; tB = tI + tW when the backward is split).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

COUNTS = ("p", "m", "v", "s", "f", "G")
SHARES = ("R",)  # per cent
SEQUENCES = ("e", "d")
TICKS = ("tF", "tB", "tI", "tW")
LONGEST_NUMBER, LONGEST_SEQUENCE_NUMBER = 15, 9  # digits
NAMES = (*COUNTS, *SHARES, *SEQUENCES, *TICKS)
LONG_NAMES = {"forward": "tF", "backward": "tB", "input": "tI", "weight": "tW"}
LONG_NAMES |= {"pp": "p", "vpp": "v", "mb": "m"}
LONG_NAMES |= {"ranks": "p", "microbatches": "m", "chunks": "v", "slices": "s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyParameters:
    """The parameters that were given; ``None`` where the family's default applies."""

    p: int
    m: int
    v: int | None = None
    s: int | None = None
    f: int | None = None
    G: int | None = None
    R: int | None = None
    e: tuple[int, ...] | None = None
    d: tuple[int, ...] | None = None
    tF: int = 1  # noqa: N815 - the command's names
    tB: int | None = None  # noqa: N815 - likewise
    tI: int | None = None  # noqa: N815 - likewise
    tW: int | None = None  # noqa: N815 - likewise

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, got {value}")
        for name in (*SHARES, *TICKS):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must be 0 or more, got {value}")
            if value is not None and name in SHARES and value > 100:
                raise ValueError(f"{name} must be at most 100 per cent, got {value}")

    @property
    def split_ticks(self) -> tuple[int, int]:
        """(tI, tW) of a split backward. Raises ``ValueError`` for a tB that is not their sum."""
        parts = self._parts
        if self.tB is not None and self.tB != sum(parts):
            raise ValueError(
                f"tB must be tI + tW = {parts[0]} + {parts[1]} where the backward is split, "
                f"got {self.tB}; give tI and tW"
            )
        return parts

    @property
    def _parts(self) -> tuple[int, int]:
        return (1 if self.tI is None else self.tI, 1 if self.tW is None else self.tW)

    @property
    def full_ticks(self) -> int:
        """tB of a full backward. Raises ``ValueError`` for tI and tW that do not add up to it."""
        if self.tB is None and self.tI is None and self.tW is None:
            return 2
        parts = self._parts
        full = sum(parts) if self.tB is None else self.tB
        if (self.tI is not None or self.tW is not None) and full != sum(parts):
            raise ValueError(f"tB must be tI + tW = {parts[0]} + {parts[1]}, got {full}")
        return full


def parse_parameters(tokens: Iterable[str]) -> FamilyParameters:
    """Read ``key=value`` words.

    Parameters
    ----------
    tokens
        ``key=value``, where a value is a whole number or, for ``e`` and ``d``, several with commas.

    Raises
    ------
    ValueError
        For an unknown or repeated key, a value that is no whole number, and for missing ``p`` or
        ``m``.

    Examples
    --------
    >>> parse_parameters(["p=4", "m=8", "e=8,4"]).e
    (8, 4)
    """
    given: dict[str, int | tuple[int, ...]] = {}
    for token in tokens:
        key, equals, value = token.partition("=")
        if not equals or key not in NAMES:
            meant = _meant(key, value or "...") or _spelt(token)
            known = " ".join(NAMES)
            raise ValueError(f"no parameter {token!r}{meant}; the parameters are {known}")
        if key in given:
            raise ValueError(f"parameter {key} is given twice")
        given[key] = _value(key, value)
    return make_parameters(given)


def _meant(word: str, value: object) -> str:
    """How to write what a word of another place (a pipeline's, a problem file's) names here."""
    short = LONG_NAMES.get(word.removeprefix("num_"))
    return f"; write {short}={value}" if short else ""


def _spelt(token: str) -> str:
    """How parameters are spelt, where a word is half of one."""
    if token in NAMES or token == "=":
        return "; write it in one word, such as p=4"
    return "; numbers have names: p=4 m=8" if token.isdigit() else ""


def make_parameters(given: Mapping[str, int | tuple[int, ...]]) -> FamilyParameters:
    """Parameters from a mapping of their names.

    Parameters
    ----------
    given
        A whole number by name; a tuple of them for a sequence.

    Raises
    ------
    ValueError
        For another name, another type, and for missing ``p`` or ``m``.
    """
    for name, value in given.items():
        if name not in NAMES:
            known = f"the parameters are {' '.join(NAMES)}"
            raise ValueError(f"no parameter {name}; {known}{_meant(name, value)}")
        parts = value if isinstance(value, tuple) else (value,)
        is_sequence = isinstance(value, tuple)
        if is_sequence is not (name in SEQUENCES) or not all(isinstance(p, int) for p in parts):
            wanted = "a tuple of whole numbers" if name in SEQUENCES else "a whole number"
            raise ValueError(f"{name} must be {wanted}, got {value!r}")
    missing = [name for name in ("p", "m") if name not in given]
    if missing:
        raise ValueError(f"parameter {missing[0]} is missing; for example p=4 m=8")
    return FamilyParameters(**given)  # type: ignore[arg-type]  # the keys decide the value types


def _value(key: str, text: str) -> int | tuple[int, ...]:
    if key in SEQUENCES and re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        return tuple(int(part) for part in text.split(","))
    if key not in SEQUENCES and re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?[0-9]{16,}" if key not in SEQUENCES else r"[0-9]+(,[0-9]+)*", text):
        digits = LONGEST_SEQUENCE_NUMBER if key in SEQUENCES else LONGEST_NUMBER
        raise ValueError(f"{key} is too large: at most {digits} digits, got {text[:40]!r}")
    wanted = "whole numbers joined by commas" if key in SEQUENCES else "a whole number"
    raise ValueError(f"{key} must be {wanted}, got {text[:40]!r}")
