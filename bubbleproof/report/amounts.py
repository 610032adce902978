"""Numbers as people read them: ticks and memory with their unit, ratios as fraction and percent.

>>> ticks(33, "tick"), ticks(1, "tick"), ticks(1234567, "us")
('33 ticks', '1 tick', '1,234,567 us')
>>> time(1234567, "us"), time(806, "ms"), time(33, "tick"), time(10**9 + 10**7 + 1, "ms")
('1.235 s', '806 ms', '33 ticks', '1,010,000 s')
>>> time(1597, "ticks of 500 us"), each_time((3, 1), "ticks of 1500 us")
('798.5 ms', '4.5 | 1.5 ms')
>>> ratio(Fraction(3, 11))
'3/11 (27.3 %)'
>>> Scale.of("byte", 3 << 30).amount(3 << 29)
'1.5 GiB'
>>> Scale.of("activation", 4).amount(4)
'4 activations'
>>> each_time((9, 0), "ms"), each_load((3 << 30, 5), "bytes"), each_load((4, 2), "activation")
('9 | 0 ms', '3 | 0 GiB', '4 | 2 activations')
>>> memory(12509990400), memories([5120, 3174]), short(13.0158)
('11.7 GiB', '5 and 3.1 KiB', '13')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.theory.pipelines.units import plural

SECONDS = {"ns": -9, "us": -6, "ms": -3, "s": 0}  # powers of ten
_TICK = re.compile(r"ticks of ([1-9]\d{0,14}) (ns|us|ms|s)")
_BYTE_NAMES = frozenset({"byte", "bytes", "B"})
_BINARY = (("GiB", 30), ("MiB", 20), ("KiB", 10), ("bytes", 0))


def _tick(unit: str) -> tuple[int, str] | None:
    """How many of a unit of time a tick is; None where a tick is no time."""
    found = _TICK.fullmatch(unit)
    return (int(found[1]), found[2]) if found else (1, unit) if unit in SECONDS else None


def ticks(value: int, unit: str) -> str:
    """A time or a count of ticks with its unit."""
    return f"{value:,} {unit if value == 1 else plural(unit)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """How times are written: ``each`` for one of the problem's ticks, divided by ``divisor``."""

    name: str
    divisor: int = 1
    each: int = 1

    @classmethod
    def of(cls, unit: str, largest: int) -> TimeScale:
        """Seconds in the unit that suits the ``largest`` time (ticks); any other unit as it is."""
        if (tick := _tick(unit)) is None:
            return cls(name=plural(unit))
        count, power = tick[0], SECONDS[tick[1]]
        fitting = [
            (name, 10 ** (each - power))
            for name, each in SECONDS.items()
            if each == power or (each > power and largest * count >= 10 ** (each - power))
        ]
        name, divisor = fitting[-1]
        return cls(name=name, divisor=divisor, each=count)

    def scaled(self, value: float) -> float:
        """The time in this scale, for an axis."""
        return value * self.each / self.divisor

    def number(self, value: int) -> str:
        """The time in this scale without its unit, to four digits or to a whole number."""
        return _digits(value * self.each, self.divisor)

    def amount(self, value: int) -> str:
        """The time in this scale with its unit."""
        return f"{self.number(value)} {self.name}"


def time(value: int, unit: str) -> str:
    """A time as people read it: seconds in the unit that suits it, to four digits."""
    if _tick(unit) is None:
        return ticks(value, unit)
    return TimeScale.of(unit, abs(value)).amount(value)


def each_time(values: Sequence[int], unit: str, most: int | None = None) -> str:
    """Times beside one another, all in the unit that suits the largest; of more their range."""
    scale = TimeScale.of(unit, max(values, default=0))
    return f"{_beside(values, scale.number, most)} {scale.name}"


def load(value: int, memory_unit: str) -> str:
    """A load as people read it: bytes in the binary unit that suits it, to four digits."""
    scale = Scale.of(memory_unit, value)
    return f"{scale.brief(value)} {scale.name_of(value)}"


def each_load(values: Sequence[int], memory_unit: str, most: int | None = None) -> str:
    """The same of loads."""
    scale = Scale.of(memory_unit, max(values, default=0))
    return f"{_beside(values, scale.brief, most)} {scale.name}"


def _beside(values: Sequence[int], text: Callable[[int], str], most: int | None) -> str:
    if most is not None and len(values) > most:
        return f"{text(min(values))} to {text(max(values))}"
    return " | ".join(map(text, values))


def _digits(value: int, divisor: int) -> str:
    """A quotient to four digits or to a whole number."""
    if value % divisor == 0:
        return f"{value // divisor:,}"
    digits = max(0, 4 - len(str(value // divisor)))
    text = f"{value / divisor:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``: a number of things of any name."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def short(value: float) -> str:
    """A number to three digits, or to a whole number."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def memory(value: int) -> str:
    """Bytes in the binary unit that suits them, to three digits."""
    return memories([value])


def memories(values: Iterable[int]) -> str:
    """The bytes of several things in one unit, to three digits: ``5 and 3.1 KiB``."""
    found = [*values]
    scale = Scale.of("byte", max(found))
    *most, last = (short(value / scale.divisor) for value in found)
    return f"{' and '.join(filter(None, [', '.join(most), last]))} {scale.name}"


def ratio(value: Fraction) -> str:
    """A ratio exactly, where it is short, and in percent rounded to a tenth."""
    rounded = percent(value)
    return f"{value} ({rounded})" if value.denominator < 10_000 else f"about {rounded}"


def percent(value: Fraction) -> str:
    """A ratio in percent, rounded to a tenth."""
    tenths = round(value * 1000)
    return f"{'-' if tenths < 0 else ''}{abs(tenths) // 10}.{abs(tenths) % 10} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How loads are written: the problem's units divided by ``divisor``, called ``name``."""

    name: str
    divisor: int

    @classmethod
    def of(cls, memory_unit: str, largest: int) -> Scale:
        """Bytes in the binary unit that suits the ``largest`` load; any other unit as it is."""
        if memory_unit not in _BYTE_NAMES:
            return cls(name=plural(memory_unit), divisor=1)
        name, shift = next(row for row in _BINARY if largest >= 1 << row[1] or not row[1])
        return cls(name=name, divisor=1 << shift)

    def number(self, load: int) -> str:
        """The load in this scale without its unit, three decimals at most."""
        if load % self.divisor == 0:
            return f"{load // self.divisor:,}"
        return f"{load / self.divisor:,.3f}".rstrip("0").rstrip(".")

    def brief(self, load: int) -> str:
        """The same, to four digits."""
        return _digits(load, self.divisor)

    def amount(self, load: int) -> str:
        """The load in this scale with its unit."""
        return f"{self.number(load)} {self.name_of(load)}"

    def name_of(self, load: int) -> str:
        """The unit after that load: of one thing, or of many."""
        single = self.name[:-1]
        return single if load == self.divisor and self.name == plural(single) else self.name
