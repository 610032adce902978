"""Zeros in what is drawn: durations, activations, lags, latencies, weights and messages of 0.

What takes no time or no room lets moments fall on one instant, where releases come before
acquisitions; a proof that says "later" and means "not before" is wrong there and nowhere else.
"""

from __future__ import annotations

from random import Random

OFTEN = 0.3


def zero_or(random: Random, least: int, most: int, zero: int = 0) -> int:
    """0 about one time in three, else a number from ``least`` to ``most``.

    ``zero`` stands for 0 where that is not to be.
    """
    return zero if random.random() < OFTEN else random.randint(least, most)


def zeros_or(random: Random, least: int, most: int, count: int, zero: int = 0) -> tuple[int, ...]:
    """So many of them; one time in six all are 0."""
    if random.random() < OFTEN / 2:
        return (zero,) * count
    return tuple(zero_or(random, least, most, zero) for _ in range(count))
