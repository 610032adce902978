"""Numbers of files and options as people write them: plain, or a text with a unit.

A file states what its plain numbers count: ticks of ``unit``, memory in ``memory_unit``. A text
such as ``"9 ms"``, ``"3.5 GiB"`` or ``"25 GB/s"`` says its own unit; both may have a part after the
point or an exponent. Layouts take such numbers as ``Time``, ``Size``, ``Rate`` and so on, and hand
on whole numbers (of a rate: fractions), in what the file counts in the end:

- times are ticks of ``unit`` where all of them are whole in it; else a tick is the greatest common
  divisor of all times of the file, which is exact;
- memory is in ``memory_unit`` where all of it is whole in it; else in bytes (a part of a byte
  counts as one), or in the greatest common divisor where the unit is none of bytes;
- without ``unit`` or ``memory_unit`` a file whose times (or sizes) are all texts counts in the
  finest unit that they name.

``MeasuredUnits`` are the context of a validation; the first one collects the numbers, and where a
finer tick or unit is needed, a second one reads them in it (``validate_measured``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, gcd, lcm
from typing import Annotated, Any, Final, TypeVar

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import Layout, validate

SHORTEST_TICKS = 20
Given = TypeVar("Given", bound=Layout)
_TEXT = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,16})?(?:e[+-]?[0-9]{1,2})?) ?([A-Za-z/]{1,16})")
_RATIO = re.compile(r"[0-9]{1,16}/[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A kind of number: what it is, a text of it, and its units by name, each in the base unit."""

    what: str
    example: str
    units: Mapping[str, Fraction]

    def read(self, text: str) -> Fraction:
        """The number of a text, in the base unit. Raises ``UnusableInput`` for other texts.

        >>> TIME.read("10.5 ms")
        Fraction(21, 2000)
        """
        value, unit = self.parts(text)
        return value * self.units[unit]

    def parts(self, text: str) -> tuple[Fraction, str]:
        """The number of a text and its unit, which is one of ``units``; raises as ``read`` does."""
        if (match := _TEXT.fullmatch(text)) is None:
            raise UnusableInput("", f'a {self.what} such as "{self.example}"', quoted(text))
        if match[2] not in self.units:
            known = f"a {self.what} in one of {', '.join(self.units)}"
            raise UnusableInput("", known, f"the unit {quoted(match[2])} of {quoted(text)}")
        return Fraction(match[1]), match[2]


def _prefixed(unit: str, base: int, prefixes: str, first: int = 1) -> dict[str, Fraction]:
    return {f"{p}{unit}": Fraction(base**n) for n, p in enumerate(prefixes, start=first)}


_BYTES = {"B": Fraction(1), **_prefixed("B", 1000, "kMGT"), **_prefixed("iB", 1024, "KMGT")}
_BITS = {name: size / 8 for name, size in _prefixed("bit", 1000, "kMGT").items()}
_SECONDS = {name: Fraction(1, 10**power) for name, power in (("ns", 9), ("us", 6), ("ms", 3))}
TIME: Final = Quantity(
    what="time",
    example="9 ms",
    units={**_SECONDS, "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)},
)
SIZE: Final = Quantity(what="size", example="80 GiB", units=_BYTES)
RATE: Final = Quantity(
    what="rate",
    example="300 GB/s",
    units={f"{name}/s": size for name, size in (_BYTES | _BITS).items()},
)
SPEED: Final = Quantity(
    what="speed",
    example="312 TFLOP/s",
    units={"FLOP/s": Fraction(1), **_prefixed("FLOP/s", 1000, "kMGTP")},
)


def bytes_of(given: int | str) -> int:
    """The bytes of a number, or of a text such as ``80 GiB``, a part of one counted as one.

    Raises ``UnusableInput`` for what is neither.

    >>> bytes_of("3.5 GiB")
    3758096384
    """
    return _within(ceil(number(given, SIZE)), 0, given)


def seconds_of(given: int | str) -> int:
    """The seconds of a whole number, or of a text such as ``2 min``, a part of one counted as one.

    Raises ``UnusableInput`` for what is neither, and for less than one.
    """
    return _within(ceil(number(given, TIME)), 1, given)


def number(given: object, quantity: Quantity) -> Fraction:
    """A plain number exactly as it is written, or that of a text in the base unit.

    Raises ``UnusableInput`` for what is neither.
    """
    if isinstance(given, str):
        return quantity.read(given)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or given in (float("inf"), float("-inf")) or given != given:
        expected = f'a number or a text such as "{quantity.example}"'
        raise UnusableInput("", expected, quoted(given))
    return Fraction(repr(given))


class MeasuredCount:
    """What the whole numbers of a file count: a unit and, where that is too coarse, a part of it.

    ``name`` is the unit that the file states, None for none.
    """

    def __init__(self, quantity: Quantity, key: str, name: object) -> None:
        self.quantity, self.key = quantity, key
        self.name = name if isinstance(name, str) else None
        self.step = Fraction(1)  # of the unit
        self.is_chosen = False
        self._plain: list[Fraction] = []
        self._told: list[Fraction] = []  # in the base unit
        self._named: set[str] = set()

    @property
    def length(self) -> Fraction | None:
        """One of the unit that the file states, in the base unit; None where that is unknown."""
        if self.name is None:
            return None
        text = self.name.removeprefix("ticks of ").replace("bytes", "B")
        text = text if text[:1].isdigit() else f"1 {text}"
        with suppress(UnusableInput):
            return self.quantity.read(text)
        return None

    def of(self, given: object) -> Fraction:
        """A number in what the file counts in. Raises ``UnusableInput`` for what is none."""
        value = number(given, self.quantity)
        if not isinstance(given, str):
            self._plain.append(value)
            return value / self.step
        self._told.append(value)
        self._named.add(self.quantity.parts(given)[1])
        if self.length is None and self.name is not None:
            known = ", ".join(self.quantity.units)
            expected = f"a number (units need {self.key} to be one of {known})"
            raise UnusableInput("", expected, quoted(given))
        return value / (self.length or 1) / self.step

    def choose(self) -> None:
        """Settle what is counted by the numbers so far. Raises ``UnusableInput`` for a mixture."""
        if self.name is None and self._told:
            if any(self._plain):
                units = ", ".join(self.quantity.units)
                known = f"one of {units}, which the numbers without a unit count"
                raise UnusableInput(self.key, known, "nothing")
            self.name = min(self._named, key=self.quantity.units.__getitem__)
            self.is_chosen = True
        values = [*self._plain, *(value / (self.length or 1) for value in self._told)]
        if any(value.denominator > 1 for value in values):
            self.step = self._finer(values)
        self.is_chosen |= self.step != 1

    def _finer(self, values: Sequence[Fraction]) -> Fraction:
        return common_divisor(values)


class _Ticks(MeasuredCount):
    """Ticks of a unit of time, or of any other."""

    @property
    def unit(self) -> str:
        """What one tick is."""
        if self.step == 1:
            return self.name or "tick"
        if self.length is None:
            return f"parts of {self.step} {self.name or 'tick'}"
        return tick_unit(self.length * self.step)


class _Memory(MeasuredCount):
    """Bytes, where they are known and the unit is too coarse; else parts of the unit."""

    @property
    def unit(self) -> str:
        """What one unit is."""
        if self.step == 1:
            return self.name or "activation"
        return "bytes" if self.length else f"parts of {self.step} {self.name or 'activation'}"

    def _finer(self, values: Sequence[Fraction]) -> Fraction:
        return 1 / self.length if self.length else common_divisor(values)


class MeasuredUnits:
    """What a problem file counts in: the context of its validation."""

    def __init__(self, unit: object, memory_unit: object) -> None:
        self.ticks = _Ticks(TIME, "unit", unit)
        self.memory = _Memory(SIZE, "memory_unit", memory_unit)

    @property
    def remarks(self) -> list[str]:
        """What was chosen for the file, in words."""
        counted = (
            (self.ticks, f"times are counted in {self.ticks.unit}, in which all are whole"),
            (self.memory, f"memory is counted in {self.memory.unit}"),
        )
        return [said for one, said in counted if one.is_chosen]


def validate_measured(layout: type[Given], data: object, units: MeasuredUnits) -> Given:
    """The data as a ``layout``, its numbers in what ``units`` come to count.

    Raises ``UnusableInput`` as ``validate`` does.
    """
    found = validate(layout, data, units)
    for one in (units.ticks, units.memory):
        one.choose()
    is_chosen = units.ticks.is_chosen or units.memory.is_chosen
    return validate(layout, data, units) if is_chosen else found


def common_divisor(values: Sequence[Fraction]) -> Fraction:
    """The greatest number of which all values are multiples.

    >>> common_divisor([Fraction(21, 2), Fraction(12), Fraction(9)])
    Fraction(3, 2)
    """
    shared = lcm(*(value.denominator for value in values))
    return Fraction(gcd(*(int(value * shared) for value in values)), shared)


def _within(value: int, least: int, given: object) -> int:
    """The number itself. Raises ``UnusableInput`` where a file cannot have it."""
    if value < least:
        raise UnusableInput("", f"a number of {least} or more", quoted(given))
    if value > LARGEST:
        raise UnusableInput("", f"a whole number of {LARGEST} or less", quoted(given))
    return value


def _counted(kind: str, least: int, given: object, info: ValidationInfo[Any]) -> int:
    """A number of ticks or of memory, whole once the file has chosen what it counts."""
    count: MeasuredCount = getattr(info.context, kind)
    return _within(ceil(count.of(given)), least, given)


def _rate(given: object, info: ValidationInfo[Any]) -> int | Fraction:
    """Memory units per tick. Raises ``UnusableInput`` for a bandwidth of 0 and what is no rate."""
    ticks, memory = info.context.ticks, info.context.memory
    if isinstance(given, str) and _RATIO.fullmatch(given):
        value = Fraction(given)
    else:
        value = number(given, RATE)
        if isinstance(given, str):
            if memory.length is None or ticks.length is None:
                expected = "a number (rates need memory_unit and unit of bytes and seconds)"
                raise UnusableInput("", expected, quoted(given))
            value *= ticks.length / memory.length
    if value <= 0:
        raise UnusableInput("", "a bandwidth above 0 (absent: no limit)", quoted(given))
    value *= ticks.step / memory.step
    return value if value.denominator > 1 else int(value)


def _per_second(quantity: Quantity, given: object) -> float:
    value = number(given, quantity)
    if value <= 0:
        raise UnusableInput("", "a number above 0", quoted(given))
    return float(value)


def _schema(least: int | None = None) -> WithJsonSchema:
    """A number of at least so much, or a text."""
    plain: dict[str, object] = {"type": "number"}
    plain |= {} if least is None else {"minimum": least}
    return WithJsonSchema({"anyOf": [plain, {"type": "string"}]})


Time = Annotated[int, PlainValidator(partial(_counted, "ticks", 0)), _schema(0)]
LongTime = Annotated[int, PlainValidator(partial(_counted, "ticks", 1)), _schema(1)]
Size = Annotated[int, PlainValidator(partial(_counted, "memory", -LARGEST)), _schema()]
NaturalSize = Annotated[int, PlainValidator(partial(_counted, "memory", 0)), _schema(0)]
SizeInBytes = Annotated[int, PlainValidator(bytes_of), _schema(0)]
Seconds = Annotated[int, PlainValidator(seconds_of), _schema(1)]
Rate = Annotated[int | Fraction, PlainValidator(_rate), _schema(0)]
Speed = Annotated[float, PlainValidator(partial(_per_second, SPEED)), _schema(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The length of a tick: how measured times become whole ticks of a problem file.

    Times are rounded to whole ticks of a length that the file states as its ``unit``. Half a tick
    is the most that rounding changes, so a tick of a twentieth of the shortest time
    (``fitting_tick``) is off by at most 1/40 of any of them; fewer ticks make a problem that is
    solved faster.
    """

    nanoseconds: int

    @classmethod
    def parsed(cls, text: str) -> Tick:
        """The tick that a text such as ``10us`` or ``1 ms`` names; else ``ValueError``."""
        nanoseconds = Fraction(0)
        with suppress(UnusableInput):
            nanoseconds = TIME.read(text) * 10**9
        if nanoseconds.denominator > 1 or not nanoseconds:
            raise ValueError(
                f"a tick must be a whole number of ns, us, ms or s such as 10us, got {text!r}"
            )
        return cls(nanoseconds=int(nanoseconds))

    def of(self, seconds: float) -> int:
        """The seconds in ticks, rounded, and at least one."""
        return max(1, round(Fraction(seconds) * 10**9 / self.nanoseconds))

    @property
    def unit(self) -> str:
        """What a problem file calls it: ``us``, or ``ticks of 5 us``."""
        return tick_unit(Fraction(self.nanoseconds, 10**9))

    def __str__(self) -> str:
        return time_text(Fraction(self.nanoseconds, 10**9))


def time_text(seconds: Fraction) -> str:
    """A time in the longest unit in which it is whole.

    >>> time_text(Fraction(1, 2000))
    '500 us'
    """
    whole = [name for name in (*_SECONDS, "s") if (seconds / TIME.units[name]).denominator == 1]
    name = whole[-1] if whole else "ns"
    return f"{seconds / TIME.units[name]} {name}"


def tick_unit(seconds: Fraction) -> str:
    """What a problem file calls a tick of this length: ``us``, or ``ticks of 5 us``."""
    text = time_text(seconds)
    return text[2:] if text.startswith("1 ") else f"ticks of {text}"


def fitting_tick(seconds: Sequence[float]) -> Tick:
    """The longest of 1, 2, 5, 10, 20, ... ns that is in each of the times 20 times or more."""
    limit = min(seconds) * 10**9 / SHORTEST_TICKS
    steps = (digit * 10**power for power in range(10) for digit in (1, 2, 5))
    return Tick(nanoseconds=max([1, *(step for step in steps if step <= limit)]))
