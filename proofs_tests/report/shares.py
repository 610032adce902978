"""What share of ranks x time each colour of a picture has to have, from durations alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bubbleproof.report.palette import IDLE, fill
from bubbleproof.report.timeline import timeline
from bubbleproof.theory.families import FamilyMember


def shares(drawn: FamilyMember, window: tuple[int, int] | None = None) -> dict[str, Fraction]:
    """By colour, its part of ranks x time, idle time included; by counting half ticks."""
    view = timeline(drawn.problem, drawn.schedule, max_bars=10**9)
    first, last = window or view.window
    total = 2 * len(view.rows) * (last - first)
    found: dict[str, Fraction] = {}
    for kind, chunk, bars in view.bars.by_kind():
        colour = fill(kind, chunk=chunk, num_chunks=view.num_chunks)
        length = np.clip(bars.end, first, last) - np.clip(bars.start, first, last)
        ran = int((length * np.where(bars.lane == 0, 2, 1)).sum())
        found[colour] = found.get(colour, Fraction(0)) + Fraction(ran, total)
    found[IDLE] = 1 - sum(found.values(), Fraction(0))
    return found
