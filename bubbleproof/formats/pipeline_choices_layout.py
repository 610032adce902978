"""The layout of a pipeline's ``choices`` in a schedule file: one key per choice, named as it is.

What is left out is not chosen. Overlapped pairs and waits are actions in text form, ``["0F7",
"7B3"]``; the other choices are tables with the fields of their classes (``theory.pipelines``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from bubbleproof.formats.action_text import parse_action
from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.validation import Layout, Natural
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction, Wait

Rows = list[list[Natural]]
PerStage = Natural | list[Natural]
Pair = Annotated[tuple[str, str], Field(strict=False)]
Sample = Annotated[tuple[Natural, Natural], Field(strict=False)]
Placement = Literal["loop", "wave", "bidirectional"] | list[Natural]
Made = TypeVar("Made")


class RecomputeLayout(Layout):
    """What is dropped after its forward and made again; R takes ``duration`` ticks."""

    stages: list[Natural] = Field(default_factory=list)
    samples: list[Sample] = Field(default_factory=list)
    kept: Natural = 0
    duration: Natural | None = None


class EvictionLayout(Layout):
    """An activation that waits on rank ``target``; each way takes ``duration`` ticks."""

    stage: Natural
    microbatch: Natural
    slice: Natural = 0
    source: Natural
    target: Natural
    duration: Natural


class OffloadLayout(Layout):
    """An activation that waits on the host; ticks of each way."""

    stage: Natural
    microbatch: Natural
    slice: Natural = 0
    offload: Natural
    reload: Natural


class StateOffloadLayout(Layout):
    """Stages that their host updates; ticks of the three tasks, memory units of one stage."""

    stages: list[Natural]
    offload: Natural = 1
    step: Natural = 1
    reload: Natural = 1
    weight: Natural = 0
    gradient: Natural = 0
    state: Natural = 0


class ShardingLayout(Layout):
    """The collectives of ZeRO: ticks, and memory units once or per stage."""

    zero: Literal[1, 2, 3]
    gather: Natural
    reduce: Natural
    regather: Natural | None = None
    rereduce: Natural | None = None
    parameter: PerStage = 0
    gradient: PerStage = 0
    enqueue: list[Natural] | None = None
    dequeue: list[Natural] | None = None


class PipelineChoicesLayout(Layout):
    """What is chosen; absent keys take the defaults of ``Choices``."""

    placement: Placement = "loop"
    split_backward: bool | list[list[bool]] = False
    weight_parts: list[Natural] | Rows = Field(default_factory=list)
    overlaps: list[Pair] = Field(default_factory=list)
    recompute: RecomputeLayout | None = None
    evictions: list[EvictionLayout] = Field(default_factory=list)
    waits: list[Pair] = Field(default_factory=list)
    offloads: list[OffloadLayout] = Field(default_factory=list)
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


def choices_from_layout(layout: PipelineChoicesLayout, where: str) -> Choices:
    """The choices described. Raises ``UnusableInput`` where values do not fit together."""
    return Choices(
        placement=frozen(layout.placement),  # type: ignore[arg-type]  # the layout checked it
        split_backward=frozen(layout.split_backward),  # type: ignore[arg-type]  # likewise
        weight_parts=frozen(layout.weight_parts),  # type: ignore[arg-type]  # likewise
        overlaps=overlaps_from(layout.overlaps, f"{where}.overlaps"),
        recompute=_made(Recompute, layout.recompute, f"{where}.recompute"),
        evictions=_all_made(Eviction, layout.evictions, f"{where}.evictions"),
        waits=tuple(_wait(f"{where}.waits[{row}]", pair) for row, pair in enumerate(layout.waits)),
        offloads=_all_made(ActivationOffload, layout.offloads, f"{where}.offloads"),
        host_capacity=layout.host_capacity,
        state_offload=_made(StateOffload, layout.state_offload, f"{where}.state_offload"),
        sharding=_made(Sharding, layout.sharding, f"{where}.sharding"),
    )


def overlaps_from(pairs: list[Pair], where: str) -> tuple[Overlap, ...]:
    """Overlapped pairs from their texts."""
    return tuple(_overlap(f"{where}[{row}]", pair) for row, pair in enumerate(pairs))


def _overlap(where: str, pair: tuple[str, str]) -> Overlap:
    forward, backward = _wait(where, pair)
    if (forward.kind, backward.kind) != (Kind.F, Kind.B) or forward.slice or backward.slice:
        raise UnusableInput(where, "an F and a B action", quoted(" ".join(pair)))
    return (forward.stage, forward.microbatch), (backward.stage, backward.microbatch)


def _wait(where: str, pair: tuple[str, str]) -> Wait:
    before, after = (parse_action(f"{where}[{side}]", text) for side, text in enumerate(pair))
    return before, after


def _made(kind: type[Made], layout: Layout | None, where: str) -> Made | None:
    """The value of a choice's class with the fields of its layout, which have the same names."""
    if layout is None:
        return None
    values = {name: frozen(getattr(layout, name)) for name in type(layout).model_fields}
    with values_at(where):
        return kind(**values)


def _all_made(kind: type[Made], layouts: Sequence[Layout], where: str) -> tuple[Made, ...]:
    made = (_made(kind, layout, f"{where}[{row}]") for row, layout in enumerate(layouts))
    return tuple(value for value in made if value is not None)


def plain(value: object) -> object:
    """A value of lists, tables and texts in place of tuples, dataclasses and actions."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, Action | Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def frozen(value: object) -> object:
    """Tuples in place of lists."""
    return tuple(frozen(item) for item in value) if isinstance(value, list | tuple) else value
