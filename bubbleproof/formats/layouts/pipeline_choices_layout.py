"""The layout of a pipeline's ``choices`` in a schedule file: one key per choice, named as it is.

What is left out is not chosen. Overlapped pairs and waits are actions in text form, ``["0F7",
"7B3"]``; the other choices are tables with the fields of their classes (``theory.pipelines``).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bubbleproof.formats.action_text import parse_action
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, NaturalRows
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction

PerStage = Natural | list[Natural]
Sample = Annotated[tuple[Natural, Natural], Field(strict=False)]
Placement = Literal["loop", "wave", "bidirectional"] | list[Natural]


def _overlap(pair: tuple[Action, Action]) -> Overlap:
    forward, backward = pair
    if (forward.kind, backward.kind) != (Kind.F, Kind.B) or forward.slice or backward.slice:
        raise UnusableInput("", "an F and a B action", quoted(f"{forward} {backward}"))
    return (forward.stage, forward.microbatch), (backward.stage, backward.microbatch)


ActionText = Annotated[str, AfterValidator(partial(parse_action, ""))]  # read as an Action
Pair = Annotated[tuple[ActionText, ActionText], Field(strict=False)]
OverlapPair = Annotated[Pair, AfterValidator(_overlap)]  # read as an Overlap


class PipelineRecomputeLayout(Layout):
    """What is dropped after its forward and made again; R takes ``duration`` ticks."""

    MAKES = Recompute

    stages: list[Natural] = Field(default_factory=list)
    samples: list[Sample] = Field(default_factory=list)
    kept: Natural = 0
    duration: Natural | None = None


class EvictionLayout(Layout):
    """An activation that waits on rank ``target``; each way takes ``duration`` ticks."""

    MAKES = Eviction

    stage: Natural
    microbatch: Natural
    slice: Natural = 0
    source: Natural
    target: Natural
    duration: Natural


class PipelineOffloadLayout(Layout):
    """An activation that waits on the host; ticks of each way."""

    MAKES = ActivationOffload

    stage: Natural
    microbatch: Natural
    slice: Natural = 0
    offload: Natural
    reload: Natural


class StateOffloadLayout(Layout):
    """Stages that their host updates; ticks of the three tasks, memory units of one stage."""

    MAKES = StateOffload

    stages: list[Natural]
    offload: Natural = 1
    step: Natural = 1
    reload: Natural = 1
    weight: Natural = 0
    gradient: Natural = 0
    state: Natural = 0


class ShardingLayout(Layout):
    """The collectives of ZeRO: ticks, and memory units once or per stage."""

    MAKES = Sharding

    zero: Annotated[Literal[1, 2, 3], AS_WHOLE]
    gather: Natural
    reduce: Natural
    regather: Natural | None = None
    rereduce: Natural | None = None
    parameter: PerStage = 0
    gradient: PerStage = 0
    enqueue: list[Natural] | None = None
    dequeue: list[Natural] | None = None


class EarlyChoicesLayout(Layout):
    """The choices that files of version 1 know; absent keys take the defaults of ``Choices``."""

    placement: Placement = "loop"
    split_backward: bool | list[list[bool]] = False
    weight_parts: list[Natural] | NaturalRows = Field(default_factory=list)
    overlaps: list[OverlapPair] = Field(default_factory=list)


class PipelineChoicesLayout(EarlyChoicesLayout):
    """What is chosen; absent keys take the defaults of ``Choices``."""

    MAKES = Choices

    recompute: PipelineRecomputeLayout | None = None
    evictions: list[EvictionLayout] = Field(default_factory=list)
    waits: list[Pair] = Field(default_factory=list)
    offloads: list[PipelineOffloadLayout] = Field(default_factory=list)
    host_capacity: Natural | None = None
    state_offload: StateOffloadLayout | None = None
    sharding: ShardingLayout | None = None


def choices_to_json(choices: Choices) -> dict[str, object]:
    """Every choice that is not the default, under its own name."""
    default = Choices()
    names = [field.name for field in fields(choices)]
    data = {name: plain(getattr(choices, name)) for name in names}
    data["overlaps"] = [[f"{f}F{i}", f"{b}B{j}"] for (f, i), (b, j) in choices.overlaps]
    return {
        name: value
        for name, value in data.items()
        if getattr(choices, name) != getattr(default, name)
    }


def plain(value: object) -> object:
    """A value of lists, tables and texts in place of tuples, dataclasses and actions."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, Action | Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
