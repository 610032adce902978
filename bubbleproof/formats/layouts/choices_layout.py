"""The ``[choices]`` table of a problem file: what is chosen, and what the solver may choose.

What is chosen has the names and the values of ``Choices``, and its layout is made from there; a
placement, a split backward and parts of W have keys of their own in the file. What the solver may
choose are the tables ``recompute`` (unless it is ``fixed``), ``evict`` and ``offload``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from pydantic import Field, create_model

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.layouts.derived_layout import forms_of
from bubbleproof.formats.validation import Layout, Natural, RankPair, described
from bubbleproof.formats.values import NaturalSize, Time
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute

Stages = Literal["all"] | list[Natural]
TABLE = "choices"
AllowedChoice = TypeVar("AllowedChoice", AllowedRecompute, AllowedOffloads)


class RecomputeLayout(Layout):
    """Recomputation: activations are dropped after the forward and made again."""

    stages: Stages = "all"
    """Which stages may recompute."""
    kept: NaturalSize = 0
    """The part of an activation that stays, the input of the stage."""
    duration: Time | None = None
    """Ticks; default: those of the forward."""
    per_microbatch: bool = False
    """Whether a stage may recompute some microbatches only."""
    fixed: bool = False
    """Whether these stages do recompute, which is then no choice of the solver."""
    samples: list[RankPair] = Field(default_factory=list)
    """With fixed: these [stage, microbatch] alone, or beside the stages that are listed."""


class EvictLayout(Layout):
    """Eviction of activations to a paired rank and back, over one link per pair."""

    pairs: Literal["mirrored"] | list[RankPair] = "mirrored"
    """Pairs of a rank and the one that it may evict to; "mirrored": rank r to rank p-1-r."""
    duration: Time
    """Ticks of each way."""


class OffloadLayout(Layout):
    """Off-load of activations to the host and back, on two engines of the rank."""

    stages: Stages = "all"
    """Which stages may off-load."""
    offload: Time
    """Ticks of the way to the host."""
    reload: Time
    """Ticks of the way back."""
    host_capacity: NaturalSize | None = None
    """What the host has for each rank; absent: unlimited."""


_OF_THE_FILE = ("placement", "split_backward", "weight_parts")  # keys outside of the table
_FIXED = {
    name: form
    for name, form in forms_of(Choices, is_measured=True).items()
    if name not in (*_OF_THE_FILE, "recompute")
}


class ChoicesLayout(create_model("_Fixed", __base__=Layout, **_FIXED)):  # type: ignore[misc]  # made from Choices' fields
    """What is chosen, and what the solver may choose: recompute, evict and offload."""

    recompute: RecomputeLayout | None = None
    evict: EvictLayout | None = None
    offload: OffloadLayout | None = None


def fixed_choices(layout: ChoicesLayout, num_stages: int) -> dict[str, Any]:
    """What is chosen, by the names of ``Choices``. Raises ``UnusableInput`` naming the place."""
    given: dict[str, Any] = {
        name: described(getattr(layout, name), f"{TABLE}.{name}")
        for name in _FIXED
        if name in layout.model_fields_set
    }
    again, where = layout.recompute, f"{TABLE}.recompute"
    if again is not None and again.fixed:
        if again.per_microbatch:
            raise UnusableInput(f"{where}.per_microbatch", "nothing beside fixed = true", "true")
        is_listed = again.stages != "all" or again.samples
        stages = () if again.stages == "all" else tuple(again.stages)
        with values_at(where):
            given["recompute"] = Recompute(
                stages=stages if is_listed else tuple(range(num_stages)),
                samples=tuple(again.samples),
                kept=int(again.kept),
                duration=again.duration,
            )
    elif again is not None and again.samples:
        raise UnusableInput(f"{where}.samples", "fixed = true beside them", quoted(again.samples))
    return given


def allowed_choices(layout: ChoicesLayout, pipeline: Pipeline) -> AllowedChoices | None:
    """What the table allows the pipeline, None where nothing.

    Raises ``UnusableInput`` for a stage or rank that the pipeline does not have, one named twice,
    and where something is fixed as well.
    """
    is_fixed = layout.recompute is None or layout.recompute.fixed
    found = AllowedChoices(
        recompute=None
        if is_fixed
        else _of_stages(AllowedRecompute, layout.recompute, pipeline, ("fixed", "samples")),
        evict=_evictions(layout.evict, pipeline),
        offload=_of_stages(AllowedOffloads, layout.offload, pipeline),
    )
    refuse_foreign(found, pipeline, TABLE)
    if found == AllowedChoices():
        return None
    for name in sorted(pipeline.choices.added):
        expected = "nothing beside what the solver may choose"
        raise UnusableInput(f"{TABLE}.{name}", expected, "a choice that is fixed")
    return found


def refuse_foreign(allowed: AllowedChoices, pipeline: Pipeline, table: str) -> None:
    """Raise ``UnusableInput`` for what cannot be allowed to the pipeline, naming the place.

    A stage or a rank that it does not have or that is named twice, more kept of an activation than
    there is, or anything at all where each stage has two ranks.
    """
    again, evict, offload = allowed.recompute, allowed.evict, allowed.offload
    for name, part in (("recompute", again), ("offload", offload)):
        if part is not None:
            _refuse_stages(part.stages, pipeline.num_stages, f"{table}.{name}.stages")
    if evict is not None:
        _refuse_pairs(evict.pairs, pipeline.num_ranks, f"{table}.evict.pairs")
    if again is not None:
        _refuse_kept(again, pipeline, f"{table}.recompute.kept")
    if allowed != AllowedChoices() and pipeline.is_bidirectional:
        raise UnusableInput(table, "a placement with one rank per stage", "bidirectional")


def _of_stages(
    kind: type[AllowedChoice],
    layout: RecomputeLayout | OffloadLayout | None,
    pipeline: Pipeline,
    but: Sequence[str] = (),
) -> AllowedChoice | None:
    if layout is None:
        return None
    stages = range(pipeline.num_stages) if layout.stages == "all" else layout.stages
    values = {name: value for name, value in layout if name not in but}
    return kind(**{**values, "stages": tuple(stages)})


def _refuse_stages(stages: Sequence[int], num_stages: int, where: str) -> None:
    for index, stage in enumerate(stages):
        if stage >= num_stages or stage in stages[:index]:
            expected = f"another stage of 0 to {num_stages - 1}"
            raise UnusableInput(f"{where}[{index}]", expected, str(stage))


def _evictions(layout: EvictLayout | None, pipeline: Pipeline) -> AllowedEvictions | None:
    if layout is None:
        return None
    pairs = layout.pairs
    if pairs == "mirrored":
        p = pipeline.num_ranks
        pairs = [(rank, p - 1 - rank) for rank in range(p) if rank != p - 1 - rank]
    _refuse_pairs(pairs, pipeline.num_ranks, f"{TABLE}.evict.pairs")
    return AllowedEvictions(pairs=tuple(pairs), duration=layout.duration)


def _refuse_pairs(pairs: Sequence[tuple[int, int]], num_ranks: int, where: str) -> None:
    sources: list[int] = []
    for index, (source, target) in enumerate(pairs):
        if source == target or max(source, target) >= num_ranks or source in sources:
            expected = f"another rank of 0 to {num_ranks - 1} and the one it evicts to"
            raise UnusableInput(f"{where}[{index}]", expected, f"{source} and {target}")
        sources.append(source)


def _refuse_kept(allowed: AllowedRecompute, pipeline: Pipeline, where: str) -> None:
    """What stays of an activation is at most what a recomputed stage acquires."""
    held = pipeline.per_stage.activation
    for stage in allowed.stages:
        if allowed.kept > held[stage]:
            expected = f"at most the activation of stage {stage} ({held[stage]})"
            raise UnusableInput(where, expected, str(allowed.kept))
