"""A printed number beside ours: how a page of ``docs/measured/papers`` shows it.

``ours`` is computed without the printed number that it stands beside; where it cannot be, ``why``
says what is missing. The deviation is of ours from the printed number, in percent of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.markdown import markdown_table

HEADER = ("number", "printed", "ours", "deviation", "how, or why not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """``printed`` as in the paper; ``ours`` None where it cannot be had; ``why`` in a sentence.

    What the paper prints is no number where ``value`` is None: it is shown without a deviation.
    """

    name: str
    printed: str
    ours: Fraction | int | str | None
    why: str

    @property
    def value(self) -> Fraction | None:
        """The printed number."""
        try:
            return Fraction(self.printed.rstrip(" %x").replace(",", ""))
        except ValueError:
            return None

    @property
    def deviation(self) -> Fraction | None:
        """In percent of the printed number."""
        if self.ours is None or isinstance(self.ours, str) or not self.value:
            return None
        return 100 * (Fraction(self.ours) / self.value - 1)


def summary(numbers: Iterable[Number]) -> str:
    """How many numbers there are, and how far ours are off."""
    every = list(numbers)
    offs = [abs(one.deviation) for one in every if one.deviation is not None]
    near = [sum(off <= most for off in offs) for most in (1, 5)]
    return (
        f"Of {len(every)} printed numbers {len(offs)} stand beside ours: {near[0]} within 1 %, "
        f"{near[1]} within 5 %. The other {len(every) - len(offs)} cannot be had from what is "
        "printed.\n"
    )


def number_table(numbers: Iterable[Number]) -> str:
    """The table of a page."""
    return markdown_table(HEADER, [_row(one) for one in numbers])


def _row(one: Number) -> tuple[str, ...]:
    off = one.deviation
    return (
        one.name,
        one.printed,
        shown(one.ours, like=one.printed),
        "" if off is None else percent(off),
        one.why,
    )


def percent(off: Fraction) -> str:
    """With its sign and one decimal; nothing that rounds to 0 has a sign."""
    text = f"{float(off):+.1f} %"
    return "0 %" if not off else text if float(text[:-2]) else "0.0 %"


def shown(ours: Fraction | int | str | None, like: str) -> str:
    """With as many decimals as the printed number has."""
    if ours is None or isinstance(ours, str):
        return ours or "cannot be had"
    plain = like.rstrip(" %x")
    decimals = len(plain.partition(".")[2])
    unit = like[len(plain) :]
    return f"{float(ours):,.{decimals}f}{unit}"
