"""Memory curves: the load of each store over time as a staircase, with its base and its capacity.

The loads are ``theory.model.memory``'s; this module adds where a curve begins and ends, cuts it to
a window, and thins a long one without losing its highs and lows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.formats.printable import on_one_line
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.memory import MemoryProfile
from bubbleproof.theory.model.problem import Problem

MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryCurve:
    """One store's load: ``load[i]`` memory units from ``time[i]`` (ticks) to ``time[i + 1]``.

    ``peak`` and ``peak_time`` are those of the whole schedule, whatever part of it the curve shows.
    ``step_size`` above 1 says that only the highest and lowest of so many steps are kept.
    """

    name: str
    time: Ints
    load: Ints
    base: int
    capacity: int | None
    peak: int
    peak_time: int
    step_size: int = 1

    @property
    def is_over(self) -> bool:
        """Whether the load exceeds the capacity at any time."""
        return self.capacity is not None and self.peak > self.capacity

    @property
    def top(self) -> int:
        """The highest of load and capacity, what an axis must reach."""
        return max(self.peak, self.capacity or 0, self.base)


def memory_curve(
    problem: Problem, profile: MemoryProfile, store: int, *, window: tuple[int, int], origin: int
) -> MemoryCurve:
    """One store's curve between the window's ticks; ``origin`` is the schedule's first start."""
    time, load = profile.curve(problem, store)
    base, peak = problem.stores[store].base, int(profile.peaks(problem)[store])
    highest = np.flatnonzero(load == peak)
    peak_time = int(time[highest[0]]) if len(highest) and peak > base else origin
    before = np.flatnonzero(time <= window[0])
    level = int(load[before[-1]]) if len(before) else base
    inside = (time > window[0]) & (time < window[1])
    shown = np.concatenate([[level], load[inside]]).astype(np.int64)
    return MemoryCurve(
        name=on_one_line(problem.stores[store].name),
        time=np.concatenate([[window[0]], time[inside], [window[1]]]).astype(np.int64),
        load=np.append(shown, _final(time, load, window[1], shown)),
        base=base,
        capacity=problem.stores[store].capacity,
        peak=peak,
        peak_time=peak_time,
    )


def _final(time: Ints, load: Ints, last: int, shown: Ints) -> int:
    """The load at the window's end, where the staircase takes its last step."""
    at_end = np.flatnonzero(time == last)
    return int(load[at_end[-1]]) if len(at_end) else int(shown[-1])


def thin_curve(curve: MemoryCurve, max_steps: int = MAX_STEPS) -> MemoryCurve:
    """The curve with about ``max_steps`` steps at most: the highs and lows of equal runs."""
    steps = len(curve.time)
    if steps <= max_steps:
        return curve
    size = -(-2 * steps // max_steps)
    runs = steps // size
    blocks = curve.load[: runs * size].reshape(runs, size)
    offset = np.arange(runs) * size
    ends = [[0, steps - 1], np.arange(runs * size, steps)]
    kept = np.unique(
        np.concatenate([offset + blocks.argmax(axis=1), offset + blocks.argmin(axis=1), *ends])
    )
    return replace(curve, time=curve.time[kept], load=curve.load[kept], step_size=size)
