"""The options of ``profile``: the pipeline, how it is measured, and the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typer import Option

from bubbleproof.commands.options.option_groups import OptionGroup
from bubbleproof.commands.options.shared_options import Json
from bubbleproof.commands.options.targets import Target
from bubbleproof.commands.replaying.replay_options import ModelOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions(OptionGroup):
    """The pipeline of the problem that is written."""

    HEADING: ClassVar[str] = "Pipeline"

    ranks: Annotated[int, Option(help="Ranks of the pipeline.")]
    microbatches: Annotated[int, Option(help="Microbatches of a step.")]
    chunks: Annotated[int, Option(help="Stages per rank.")] = 1
    placement: Annotated[str, Option(help="loop or wave.")] = "loop"
    whole: Annotated[bool, Option(help="Whole backwards, not I and W.")] = False
    latency: Annotated[int, Option(help="Ticks of a message; not measured.")] = 0
    capacity: Annotated[str | None, Option(help='Memory of each rank such as "80 GiB".')] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions(OptionGroup):
    """How its stages are measured; ``tick`` None is one that fits the times."""

    HEADING: ClassVar[str] = "Measurement"

    device: Annotated[str, Option(help="cpu or cuda.")] = "cpu"
    warmup: Annotated[int, Option(help="Rounds that are not counted.")] = 3
    repeats: Annotated[int, Option(help="Rounds whose median is taken.")] = 10
    tick: Annotated[
        str | None, Option(help="Length of a tick such as 10us (default: one that fits).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest(OptionGroup):
    """The model, the pipeline, how to measure it, and where the problem goes."""

    output: Annotated[str, Option("-o", help="The problem file to write (.toml)."), Target.FILE]
    pipeline: PipelineOptions
    measurement: MeasurementOptions
    model: ModelOptions
    json: Json = False
