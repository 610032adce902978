"""The ``[choices]`` table of a problem file: what the solver may recompute, evict and off-load."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.sizes_and_rates import NaturalSize
from bubbleproof.formats.validation import Layout, Natural
from bubbleproof.theory.pipelines.allowed import (
    Allowed,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline

Stages = Literal["all"] | list[Natural]
RankPair = Annotated[tuple[Natural, Natural], Field(strict=False)]
TABLE = "choices"
Made = TypeVar("Made", AllowedRecompute, AllowedOffloads)


class RecomputeLayout(Layout):
    """Recomputation: activations are dropped after the forward and made again."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    stages: Stages = "all"
    """Which stages may recompute."""
    kept: NaturalSize = 0
    """The part of an activation that stays, the input of the stage."""
    duration: Natural | None = None
    """Ticks; default: those of the forward."""
    per_microbatch: bool = False
    """Whether a stage may recompute some microbatches only."""


class EvictLayout(Layout):
    """Eviction of activations to a paired rank and back, over one link per pair."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    pairs: Literal["mirrored"] | list[RankPair] = "mirrored"
    """Pairs of a rank and the one that it may evict to; "mirrored": rank r to rank p-1-r."""
    duration: Natural
    """Ticks of each way."""


class OffloadLayout(Layout):
    """Off-load of activations to the host and back, on two engines of the rank."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    stages: Stages = "all"
    """Which stages may off-load."""
    offload: Natural
    """Ticks of the way to the host."""
    reload: Natural
    """Ticks of the way back."""
    host_capacity: NaturalSize | None = None
    """What the host has for each rank; absent: unlimited."""


class ChoicesLayout(Layout):
    """What the solver may choose; an absent table allows nothing of its kind."""

    recompute: RecomputeLayout | None = None
    evict: EvictLayout | None = None
    offload: OffloadLayout | None = None


def allowed_choices(layout: ChoicesLayout, pipeline: Pipeline) -> Allowed | None:
    """What the table allows the pipeline, None where nothing.

    Raises ``UnusableInput`` for a stage or rank that the pipeline does not have, and one named
    twice.
    """
    found = Allowed(
        recompute=_of_stages(AllowedRecompute, layout.recompute, pipeline, "recompute"),
        evict=_evictions(layout.evict, pipeline),
        offload=_of_stages(AllowedOffloads, layout.offload, pipeline, "offload"),
    )
    if found.recompute is not None:
        _refuse_kept(found.recompute, pipeline)
    if found != Allowed() and pipeline.is_bidirectional:
        raise UnusableInput(TABLE, "a placement with one rank per stage", "bidirectional")
    return None if found == Allowed() else found


def _of_stages(
    kind: type[Made], layout: RecomputeLayout | OffloadLayout | None, pipeline: Pipeline, name: str
) -> Made | None:
    if layout is None:
        return None
    return kind(**{**dict(layout), "stages": _stages(layout.stages, pipeline, name)})


def _stages(given: Stages, pipeline: Pipeline, kind: str) -> tuple[int, ...]:
    if given == "all":
        return tuple(range(pipeline.num_stages))
    for index, stage in enumerate(given):
        if not isinstance(stage, int) or stage >= pipeline.num_stages or stage in given[:index]:
            where = f"{TABLE}.{kind}.stages[{index}]"
            raise UnusableInput(
                where, f"another stage of 0 to {pipeline.num_stages - 1}", str(stage)
            )
    return tuple(int(stage) for stage in given)


def _evictions(layout: EvictLayout | None, pipeline: Pipeline) -> AllowedEvictions | None:
    if layout is None:
        return None
    p = pipeline.num_ranks
    if layout.pairs == "mirrored":
        pairs = [(rank, p - 1 - rank) for rank in range(p) if rank != p - 1 - rank]
        return AllowedEvictions(pairs=tuple(pairs), duration=layout.duration)
    sources: list[int] = []
    for index, pair in enumerate(layout.pairs):
        source, target = pair
        if source == target or max(source, target) >= p or source in sources:
            where = f"{TABLE}.evict.pairs[{index}]"
            expected = f"another rank of 0 to {p - 1} and the one it evicts to"
            raise UnusableInput(where, expected, f"{source} and {target}")
        sources.append(source)
    return AllowedEvictions(pairs=tuple(layout.pairs), duration=layout.duration)


def _refuse_kept(allowed: AllowedRecompute, pipeline: Pipeline) -> None:
    """What stays of an activation is at most what a recomputed stage acquires."""
    held = pipeline.per_stage.activation
    for stage in allowed.stages:
        if allowed.kept > held[stage]:
            expected = f"at most the activation of stage {stage} ({held[stage]})"
            raise UnusableInput(f"{TABLE}.recompute.kept", expected, str(allowed.kept))
