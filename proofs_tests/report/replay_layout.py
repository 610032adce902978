"""The keys of a replay file, their types and ranges; ``report.replay_json`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, Whole

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
    semantics_why: str = ""
    seed: Natural
    ranks: Natural
    stages: Natural
    microbatches: Natural
    data_parallel: Natural
    zero: str
    seconds: Number
    unsafe: bool
    stopped: str


class ReplayModelLayout(Layout):
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
    """Gradients against both oracles.

    ``smallest_share`` is of a type of 16 bits: the least that a microbatch brings; where the
    tolerance exceeds it, nothing is decided.
    """

    equal: bool
    max_relative_error: Number | None
    tolerance: Number
    smallest_share: Number | None = None


class LossesLayout(Layout):
    """Losses by microbatch, then slice."""

    equal: bool
    each: list[Number | None]


class WeightsLayout(Layout):
    """Weights after ``steps`` optimizer steps, or after those of the hosts.

    ``clip`` is the most that the global norm of gradients might be, where they were clipped;
    ``accumulate`` the passes that added up to the gradient of a step, ``loss_scale`` what losses
    were multiplied by, ``skipped_steps`` those whose gradients were not all finite.
    """

    optimizer: str
    steps: Natural
    has_barrier: bool
    clip: Number | None = None
    accumulate: Natural = 1
    loss_scale: str = ""
    skipped_steps: list[Natural] = Field(default_factory=list)
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


class BirthsLayout(Layout):
    """Bytes that ranks and their hosts begin with, replica by replica."""

    measured: Bytes = Field(default_factory=list)
    predicted: Bytes = Field(default_factory=list)
    host_measured: Bytes = Field(default_factory=list)
    host_predicted: Bytes = Field(default_factory=list)


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


class WorkLayout(Layout):
    """The floating-point operations of each process in all passes, and what is no such work."""

    measured: list[Natural]
    predicted: list[Natural]
    not_counted: list[str]


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
    version: Annotated[Literal[1], AS_WHOLE]
    name: str
    ok: bool
    failures: list[str]
    run: RunLayout
    model: ReplayModelLayout
    gradients: GradientsLayout
    losses: LossesLayout
    weights: WeightsLayout
    peaks: PeaksLayout
    births: BirthsLayout = Field(default_factory=BirthsLayout)
    model_state: ModelStateLayout
    trace: dict[str, list[TracedAction]]
    predicted: PredictedLayout
    machine: MachineLayout
    not_checked: list[str]
    not_counted: list[str] = Field(default_factory=list)
    work: WorkLayout | None = None
