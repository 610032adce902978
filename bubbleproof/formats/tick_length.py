"""The length of a tick: how measured times become whole ticks of a problem file.

Times are rounded to whole ticks of a length that the file states as its ``unit``. Half a tick is
the most that rounding changes, so a tick of a twentieth of the shortest time (``fitting_tick``)
is off by at most 1/40 of any of them; fewer ticks make a problem that is solved faster.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TICK = re.compile(r"([1-9][0-9]*) ?(ns|us|ms|s)")
SHORTEST_TICKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The length of a tick, in whole nanoseconds."""

    nanoseconds: int

    @classmethod
    def parsed(cls, text: str) -> Tick:
        """The tick that a text such as ``10us`` or ``1 ms`` names; else ``ValueError``."""
        found = _TICK.fullmatch(text)
        if found is None:
            raise ValueError(
                f"a tick must be a whole number of ns, us, ms or s such as 10us, got {text!r}"
            )
        return cls(nanoseconds=int(found[1]) * _UNITS[found[2]])

    def of(self, seconds: float) -> int:
        """The seconds in ticks, rounded, and at least one."""
        return max(1, round(Fraction(seconds) * 10**9 / self.nanoseconds))

    @property
    def unit(self) -> str:
        """What a problem file calls it: ``us``, or ``ticks of 5 us``."""
        return str(self)[2:] if str(self).startswith("1 ") else f"ticks of {self}"

    def __str__(self) -> str:
        name = max((u for u in _UNITS if self.nanoseconds % _UNITS[u] == 0), key=_UNITS.__getitem__)
        return f"{self.nanoseconds // _UNITS[name]} {name}"


def fitting_tick(seconds: Sequence[float]) -> Tick:
    """The longest of 1, 2, 5, 10, 20, ... ns that is in each of the times 20 times or more."""
    limit = min(seconds) * 10**9 / SHORTEST_TICKS
    fitting = 1
    for power in range(10):
        for digit in (1, 2, 5):
            if digit * 10**power <= limit:
                fitting = digit * 10**power
    return Tick(nanoseconds=fitting)
