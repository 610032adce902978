"""A model's stages measured on a device, and written as a problem to solve and replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bubbleproof.facts import Fact, FactCells, FactSource, valued
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.errors import about
from bubbleproof.formats.files import write_text
from bubbleproof.formats.problem_toml import problem_of, read_problem
from bubbleproof.formats.toml_text import toml_text
from bubbleproof.formats.values import Tick, fitting_tick
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_limits import require_room
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.torch_limits import room_needed, torch_needed

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.profiling import StageProfile, Times


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledPipeline:
    """The pipeline of the problem that is written: ``latency`` in ticks, ``capacity`` as it is told
    (``"80 GiB"``), ``whole`` backwards or I and W.

    Raises ``ValueError`` for numbers below 1, or beyond what a pipeline may have.
    """

    ranks: int
    microbatches: int
    chunks: int = 1
    placement: str = "loop"
    whole: bool = False
    latency: int = 0
    capacity: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("ranks", self.ranks), ("chunks", self.chunks)):
            if value < 1:
                raise ValueError(f"profile {name} must be 1 or more, got {value}")
        microbatches = max(1, self.microbatches)
        require_size(ranks=self.ranks, chunks=self.chunks, microbatches=microbatches)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMeasurement:
    """How stages are measured: ``warmup`` rounds that are not counted, ``repeats`` whose median is
    taken, and the length of a ``tick`` such as ``"10us"``; None is one that fits.
    """

    device: str = "cpu"
    warmup: int = 3
    repeats: int = 10
    tick: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfiledModel(FactSource):
    """The ``stages`` of a model as they were measured on ``device``, written to ``problem``."""

    problem: str
    device: str
    tick: Tick
    measurement: StageMeasurement
    stages: tuple[StageProfile, ...]
    columns: ClassVar[FactCells] = ("stage", "bytes", "us", "of")

    def facts(self) -> list[Fact]:
        """A row for each stage, with the medians of F, I, W and B in microseconds."""
        return [
            *valued("", problem=self.problem, device=self.device, tick=str(self.tick)),
            *valued("", warmup=self.measurement.warmup, repeats=self.measurement.repeats),
            *valued("", stages=[asdict(stage) for stage in self.stages]),
            *map(_stage_fact, self.stages),
        ]


def _stage_fact(stage: StageProfile) -> Fact:
    times = (stage.forward, stage.input_backward, stage.weight_backward, stage.backward)
    medians = tuple(round(each.median * 1e6, 1) for each in times)
    held = (stage.activation_bytes, stage.kept_for_weight_bytes, stage.static_bytes)
    return Fact(label=f"stage {stage.stage}", value=medians, expected=held, verdict="F I W B")


def profiled_model(
    spec: ModelSpec,
    pipeline: ProfiledPipeline,
    measurement: StageMeasurement,
    target: str,
    say: Callable[[str], None] | None = None,
) -> ProfiledModel:
    """Measure the stages of a model and write the problem file.

    Parameters
    ----------
    target
        The problem file to write (.toml).
    say
        Hears of each round.

    Raises
    ------
    RuntimeError
        For a stage that fails, or does not end.
    UnusableInput, ValueError
        For what cannot be measured or be a problem.
    """
    if Path(target).suffix.lower() != ".toml":
        raise ValueError(f"profile writes a problem file ending in .toml, got {target!r}")
    given_tick = None if measurement.tick is None else Tick.parsed(measurement.tick)
    _require_problem(pipeline, target)
    largest = max([spec.layers] if isinstance(spec.layers, int) else spec.layers)
    whole = replace(spec, layers=largest)
    require_room(whole, num_stages=1, num_slices=1, device=measurement.device)
    with torch_needed():
        from bubbleproof.reference_exec.evidence.profiling import profile_stages
        from bubbleproof.reference_exec.models.footprint import typed
        from bubbleproof.reference_exec.runtime.cuda import open_device
    device = open_device(measurement.device)
    with room_needed():
        spec = typed(spec)
        stages = profile_stages(
            spec,
            pipeline.ranks * pipeline.chunks,
            device=device,
            warmup=measurement.warmup,
            repeats=measurement.repeats,
            progress=say,
        )
    tick = given_tick or fitting_tick([s for times in _seconds(pipeline, stages) for s in times])
    remarks = _remarks(spec, measurement, stages, device.description)
    with written_together(None, target) as (_, new):
        write_text(new, toml_text(measured_content(pipeline, stages, tick, target), remarks))
        read_problem(new)  # says in one line what no problem can have, such as too little memory
    return ProfiledModel(
        problem=target,
        device=device.description,
        tick=tick,
        measurement=measurement,
        stages=tuple(stages),
    )


def _require_problem(pipeline: ProfiledPipeline, target: str) -> None:
    """Raise ``UnusableInput`` for a pipeline that no times could make a problem of."""
    ticks = dict.fromkeys(_durations(pipeline), [1] * (pipeline.ranks * pipeline.chunks))
    with about(target):
        problem_of(_content(pipeline, target, unit="s", durations=ticks, memory={}), name="")


def _durations(pipeline: ProfiledPipeline) -> dict[str, str]:
    """The keys of ``[durations]``, and which times of a stage they tell."""
    if pipeline.whole:
        return {"forward": "forward", "backward": "backward"}
    return {"forward": "forward", "input": "input_backward", "weight": "weight_backward"}


def _seconds(pipeline: ProfiledPipeline, stages: Sequence[StageProfile]) -> list[list[float]]:
    """The median of each stage, a row for each key of ``[durations]``."""
    names = _durations(pipeline).values()
    return [[getattr(stage, name).median for stage in stages] for name in names]


def measured_content(
    pipeline: ProfiledPipeline, stages: Sequence[StageProfile], tick: Tick, target: str
) -> dict[str, object]:
    """The problem file of measured stages: their times in ticks, their memory in bytes."""
    rows = zip(_durations(pipeline), _seconds(pipeline, stages), strict=True)
    memory = {
        "activation": [stage.activation_bytes for stage in stages],
        "released_at_input": [s.activation_bytes - s.kept_for_weight_bytes for s in stages],
        "static": [stage.static_bytes for stage in stages],
    }
    ticks = {key: [tick.of(seconds) for seconds in row] for key, row in rows}
    return _content(pipeline, target, unit=tick.unit, durations=ticks, memory=memory)


def _content(
    pipeline: ProfiledPipeline, target: str, *, memory: Mapping[str, list[int]], **told: object
) -> dict[str, object]:
    """The keys that are asked for, with those that are ``told``."""
    shape = ("ranks", "microbatches", "chunks", "placement")
    capacity = {} if pipeline.capacity is None else {"capacity": pipeline.capacity}
    return {
        "name": Path(target).stem,
        **told,
        "memory_unit": "bytes",
        **{name: getattr(pipeline, name) for name in shape},
        "split_backward": not pipeline.whole,
        "memory": {**capacity, **memory},
        "links": {"latency": pipeline.latency},
    }


def _remarks(
    spec: ModelSpec, measurement: StageMeasurement, stages: Sequence[StageProfile], where: str
) -> tuple[str, ...]:
    import torch

    return (
        f"Measured on {where}, torch {torch.__version__}: medians of {measurement.repeats} "
        f"rounds after {measurement.warmup} of warm-up.",
        f"Model: {_model(spec)}, {spec.dtype}.",
        "Activation bytes are what autograd keeps; static bytes weights and gradients, no "
        "optimizer state.",
        "Messages were not measured: latency is what was asked for.",
        *(
            f"stage {s.stage}: F {_spread(s.forward)}, I {_spread(s.input_backward)}, "
            f"W {_spread(s.weight_backward)}, B {_spread(s.backward)}"
            for s in stages
        ),
    )


def _model(spec: ModelSpec) -> str:
    if spec.kind == "own":
        return spec.factory
    words = f", vocabulary {spec.vocabulary}{' tied' * spec.tied}" if spec.vocabulary else ""
    return (
        f"{spec.kind}, hidden {spec.hidden}, layers {spec.layers}, heads {spec.heads}, sequence "
        f"{spec.sequence}, batch {spec.batch}{words}"
    )


def _spread(times: Times) -> str:
    """The median, and the shortest to the longest, in microseconds."""
    least, most = times.spread
    return f"{times.median * 1e6:.0f} us ({least * 1e6:.0f} to {most * 1e6:.0f})"
