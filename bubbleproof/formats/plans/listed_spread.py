"""A plan's table as how durations spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.formats.errors import values_at
from bubbleproof.theory.pipelines.programs.spread import Spread

if TYPE_CHECKING:  # what has been read is all that is asked for here
    from bubbleproof.formats.layouts.plan_layout import PlanLayout


def spread_of(given: PlanLayout) -> Spread:
    """How durations spread. Raises ``UnusableInput`` for numbers that say no such thing."""
    jitter = given.jitter
    with values_at("plan.jitter"):
        return Spread(
            action_percent=jitter.action_percent,
            rank_percent=jitter.rank_percent,
            straggler=jitter.straggler,
            slow_link=jitter.slow_link,
            samples=jitter.samples,
            seed=jitter.seed,
        )
