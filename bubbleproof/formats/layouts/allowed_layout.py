"""The table ``allowed`` of a schedule file: what was free to choose when the schedule was made.

It is the scope of an optimum: a certificate says that no schedule of any of these choices is
better. Every key is named as the field of its class (``theory.pipelines.allowed``).
"""

from __future__ import annotations

from bubbleproof.formats.layouts.derived_layout import plain
from bubbleproof.formats.validation import Layout, Natural, RankPair
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)


class AllowedRecomputeLayout(Layout):
    """Stages that may be recomputed; ``kept`` units of each activation stay."""

    MAKES = AllowedRecompute

    stages: list[Natural]
    kept: Natural = 0
    duration: Natural | None = None
    per_microbatch: bool = False


class AllowedEvictionsLayout(Layout):
    """Pairs of ranks (source, target); ticks of each way."""

    MAKES = AllowedEvictions

    pairs: list[RankPair]
    duration: Natural


class AllowedOffloadsLayout(Layout):
    """Stages whose activations may go to the host; ticks of the ways there and back."""

    MAKES = AllowedOffloads

    stages: list[Natural]
    offload: Natural
    reload: Natural
    host_capacity: Natural | None = None


class AllowedLayout(Layout):
    """What was free to choose; an absent table allowed nothing of its kind."""

    MAKES = AllowedChoices

    recompute: AllowedRecomputeLayout | None = None
    evict: AllowedEvictionsLayout | None = None
    offload: AllowedOffloadsLayout | None = None


def allowed_to_json(allowed: AllowedChoices) -> dict[str, object]:
    """The tables of what is allowed."""
    tables = {name: plain(getattr(allowed, name)) for name in AllowedLayout.model_fields}
    return {name: table for name, table in tables.items() if table is not None}
