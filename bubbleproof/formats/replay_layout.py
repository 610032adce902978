"""The keys of a replay file, their types and ranges; ``replay_json`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.validation import Layout, Natural, Whole

Number = Annotated[float, Field(allow_inf_nan=False)]
Bytes = list[Natural]
TracedAction = Annotated[
    tuple[str, Natural, Natural, Natural, Bytes, Bytes | None], Field(strict=False)
]
PredictedAction = Annotated[tuple[str, Whole, Whole], Field(strict=False)]


class RunLayout(Layout):
    """How it ran."""

    backend: str
    device: str
    semantics: str
    seed: Natural
    ranks: Natural
    stages: Natural
    microbatches: Natural
    data_parallel: Natural
    zero: str
    seconds: Number
    unsafe: bool
    stopped: str


class ModelLayout(Layout):
    """What was trained."""

    kind: str
    hidden: Natural
    layers: Natural | list[Natural]
    heads: Natural
    kv_heads: Natural
    sequence: Natural
    batch: Natural
    dtype: str
    seed: Natural
    factory: str
    vocabulary: Natural
    tied: bool
    num_stages: Natural


class GradientsLayout(Layout):
    """Gradients against both oracles."""

    equal: bool
    max_relative_error: Number | None
    tolerance: Number


class LossesLayout(Layout):
    """Losses by microbatch, then slice."""

    equal: bool
    each: list[Number | None]


class WeightsLayout(Layout):
    """Weights after ``steps`` optimizer steps, or after those of the hosts."""

    optimizer: str
    steps: Natural
    has_barrier: bool
    num_updated_stages: Natural
    equal: bool
    max_relative_error: Number | None


class PeaksLayout(Layout):
    """Bytes by rank, replica by replica; ``predicted`` may be empty where a schedule is forced."""

    measured: Bytes
    predicted: Bytes
    host_measured: Bytes
    host_predicted: Bytes
    state_measured: Bytes
    state_predicted: Bytes
    allocator: Bytes


class StateBytesLayout(Layout):
    """Bytes of model state by what they hold."""

    weights: Natural
    gradients: Natural
    optimizer: Natural


class ModelStateLayout(Layout):
    """Model state as the run ends, by rank and by rank's host, replica by replica."""

    measured: list[StateBytesLayout]
    predicted: list[StateBytesLayout]
    host_measured: list[StateBytesLayout]
    host_predicted: list[StateBytesLayout]


class PredictedLayout(Layout):
    """The schedule's own times: action, start and end in ticks of ``unit``, by resource."""

    unit: str
    orders: dict[str, list[PredictedAction]]


class MachineLayout(Layout):
    """What ran it."""

    processor: str
    cores: Natural
    memory_bytes: Natural
    versions: dict[str, str]


class ReplayLayout(Layout):
    """A replay file."""

    format: Literal["bubbleproof/replay"]
    version: Literal[1]
    name: str
    ok: bool
    failures: list[str]
    run: RunLayout
    model: ModelLayout
    gradients: GradientsLayout
    losses: LossesLayout
    weights: WeightsLayout
    peaks: PeaksLayout
    model_state: ModelStateLayout
    trace: dict[str, list[TracedAction]]
    predicted: PredictedLayout
    machine: MachineLayout
    not_checked: list[str]
    not_counted: list[str] = Field(default_factory=list)


def replay_schema() -> dict[str, object]:
    """The JSON schema of a replay file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ReplayLayout.model_json_schema(),
    }
