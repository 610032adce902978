"""A paper's headline figure beside ours, by three ways that share nothing.

*Cost model*: the iterations that ``bubbleproof.costs`` estimates for the two systems, from shapes
and a card (the calibrated A100 where there is one, a data sheet else). *Schedules*: what built
schedules take or hold, in ticks and units that follow from shapes or, where the reason says so,
from times that the paper prints. *Paper*: the paper's own formulas, or the printed numbers that it
rests on. A headline is never on both sides of its own row.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from benchmarks.markdown import markdown_table

HEADER = ("headline", "printed", "cost model", "schedules", "paper", "why, and what is missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One figure; a way that cannot give it is None. ``why`` tells the reason of the error."""

    name: str
    printed: str
    model: Fraction | float | None = None
    schedules: Fraction | float | None = None
    paper: Fraction | float | None = None
    why: str

    @property
    def value(self) -> Fraction:
        """The printed figure."""
        return Fraction(self.printed.rstrip(" %x").replace(",", ""))

    def off(self, ours: Fraction | float) -> Fraction:
        """The error of ours, in percent of the printed figure."""
        return 100 * (Fraction(ours) / self.value - 1)


def headline_table(headlines: list[Headline]) -> str:
    """The table of one paper; in brackets the error in percent of the printed figure."""
    return markdown_table(HEADER, [_row(one) for one in headlines])


def _row(one: Headline) -> tuple[str, ...]:
    ways = (one.model, one.schedules, one.paper)
    return one.name, one.printed, *(_cell(one, way) for way in ways), one.why


def _cell(one: Headline, ours: Fraction | float | None) -> str:
    if ours is None:
        return ""
    return f"{shown(ours, like=one.printed)} ({percent(one.off(ours))})"


def percent(off: Fraction) -> str:
    """With its sign and one decimal; nothing that rounds to 0 has a sign."""
    text = f"{float(off):+.1f} %"
    return "0 %" if not off else text if float(text[:-2]) else "0.0 %"


def shown(ours: Fraction | float, like: str) -> str:
    """With as many decimals as the printed number has, and its unit."""
    plain = like.rstrip(" %x")
    decimals = len(plain.partition(".")[2])
    return f"{float(ours):,.{decimals}f}{like[len(plain) :]}"
