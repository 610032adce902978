"""How durations spread in life: what schedules are timed under besides their nominal ticks.

A duration is the nominal one times two factors of mean 1: one of the action, drawn anew each time,
and one of the rank, drawn once for a whole training step. Both are log-normal, with the standard
deviations ``action`` and ``rank`` (percent of the mean). Above that one rank may be slower in all
it does (``straggler``: rank, percent), and the messages of one pair of ranks (``slow_link``: both
ranks, percent).
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_SAMPLES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The spread, how many steps to draw, and the seed. Raises ``ValueError`` for what is none."""

    action_percent: int = 5
    rank_percent: int = 2
    straggler: tuple[int, int] | None = None
    slow_link: tuple[int, int, int] | None = None
    samples: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("action_percent", "rank_percent"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must be 0 to 100, got {getattr(self, name)}")
        if self.slow_link is not None and self.slow_link[0] == self.slow_link[1]:
            one, other, _ = self.slow_link
            raise ValueError(f"slow_link must join two different ranks, got {one} and {other}")
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise ValueError(f"samples must be 1 to {MOST_SAMPLES}, got {self.samples}")
