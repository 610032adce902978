"""``bubbleproof profile``: measure a model's stages on a device and pose them as a problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bubbleproof.commands.output import HOLDS, print_json, print_table, say
from bubbleproof.commands.profile_options import MeasurementOptions, PipelineOptions
from bubbleproof.commands.targets import make_folder, require_writable
from bubbleproof.commands.torch_limits import room_needed, torch_needed
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text
from bubbleproof.formats.measured_problem import (
    MeasuredProblem,
    MeasuredStage,
    Tick,
    fitting_tick,
    problem_text,
)
from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_limits import require_room
from bubbleproof.theory.pipelines.limits import require_size

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.profile import StageProfile, Times


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """The model, the pipeline to pose and how to measure it."""

    spec: ModelSpec
    pipeline: PipelineOptions
    measurement: MeasurementOptions


def run_profile(request: ProfileRequest, *, target: str, as_json: bool) -> int:
    """Measure, write the problem file ``target`` and print the times.

    Raises ``ValueError`` for what cannot be measured or posed.
    """
    if Path(target).suffix.lower() != ".toml":
        raise ValueError(f"profile writes a problem file ending in .toml, got {target!r}")
    pipeline, measurement = request.pipeline, request.measurement
    for name, value in (("ranks", pipeline.ranks), ("chunks", pipeline.chunks)):
        if value < 1:
            raise ValueError(f"profile {name} must be 1 or more, got {value}")
    require_size(
        ranks=pipeline.ranks, chunks=pipeline.chunks, microbatches=max(1, pipeline.microbatches)
    )
    tick = None if measurement.tick is None else Tick.parsed(measurement.tick)
    require_writable([target])
    _require_posable(pipeline, target)
    layers = request.spec.layers
    largest = replace(request.spec, layers=layers if isinstance(layers, int) else max(layers))
    require_room(largest, num_stages=1, num_slices=1, device=measurement.device)
    with torch_needed():
        from bubbleproof.reference_exec.evidence.profile import profile_stages
        from bubbleproof.reference_exec.runtime.devices import open_device
    device = open_device(measurement.device)
    with room_needed():
        stages = profile_stages(
            request.spec,
            pipeline.ranks * pipeline.chunks,
            device=device,
            warmup=measurement.warmup,
            repeats=measurement.repeats,
            progress=None if as_json else say,
        )
    problem = _problem(request, stages, tick, device.description, name=Path(target).stem)
    make_folder(target)
    write_text(target, problem_text(problem))
    read_problem(target)  # says in one line what no problem can have, such as too little memory
    if as_json:
        print_json(_as_json(request, problem, stages, device.description, target))
    else:
        print_table(
            f"{target}: 1 tick = {problem.tick}, median of {measurement.repeats} rounds on "
            f"{device.description}",
            ("stage", "F us", "I us", "W us", "B us", "bytes F to I", "bytes I to W", "static"),
            _rows(stages),
        )
    return HOLDS


def _require_posable(pipeline: PipelineOptions, target: str) -> None:
    """Raise ``UnusableInput`` for a pipeline that no times could make a problem of."""
    nominal = MeasuredStage(
        forward=1.0,
        input_backward=1.0,
        weight_backward=1.0,
        backward=2.0,
        activation_bytes=0,
        released_at_input_bytes=0,
        static_bytes=0,
    )
    stages = (nominal,) * (pipeline.ranks * pipeline.chunks)
    posed = _posed(pipeline, stages, Tick.parsed("1s"), name=Path(target).stem)
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "draft.toml"
        draft.write_text(problem_text(posed), encoding="utf-8")
        try:
            read_problem(draft)
        except UnusableInput as error:
            error.subject = target
            raise


def _problem(
    request: ProfileRequest,
    stages: tuple[StageProfile, ...],
    tick: Tick | None,
    where: str,
    *,
    name: str,
) -> MeasuredProblem:
    pipeline = request.pipeline
    measured = tuple(
        MeasuredStage(
            forward=stage.forward.median,
            input_backward=stage.input_backward.median,
            weight_backward=stage.weight_backward.median,
            backward=stage.backward.median,
            activation_bytes=stage.activation_bytes,
            released_at_input_bytes=stage.activation_bytes - stage.kept_for_weight_bytes,
            static_bytes=stage.static_bytes,
        )
        for stage in stages
    )
    posed = [
        seconds
        for stage in measured
        for seconds in (
            (stage.forward, stage.backward)
            if pipeline.whole
            else (stage.forward, stage.input_backward, stage.weight_backward)
        )
    ]
    return _posed(
        pipeline,
        measured,
        fitting_tick(posed) if tick is None else tick,
        name=name,
        remarks=_remarks(request, stages, where),
    )


def _posed(
    pipeline: PipelineOptions,
    stages: tuple[MeasuredStage, ...],
    tick: Tick,
    *,
    name: str,
    remarks: tuple[str, ...] = (),
) -> MeasuredProblem:
    return MeasuredProblem(
        name=name,
        ranks=pipeline.ranks,
        microbatches=pipeline.microbatches,
        chunks=pipeline.chunks,
        placement=pipeline.placement,
        is_split=not pipeline.whole,
        tick=tick,
        latency=pipeline.latency,
        capacity=pipeline.capacity,
        stages=stages,
        remarks=remarks,
    )


def _remarks(
    request: ProfileRequest, stages: tuple[StageProfile, ...], where: str
) -> tuple[str, ...]:
    import torch

    spec, measurement = request.spec, request.measurement
    return (
        f"Measured on {where}, torch {torch.__version__}: medians of {measurement.repeats} "
        f"rounds after {measurement.warmup} of warm-up.",
        f"Model: {_model(spec)}, {spec.dtype}.",
        "Activation bytes are what autograd keeps; static bytes weights and gradients, no "
        "optimizer state.",
        "Messages were not measured: latency is what was asked for.",
        *(
            f"stage {s.stage}: F {_seconds(s.forward)}, I {_seconds(s.input_backward)}, "
            f"W {_seconds(s.weight_backward)}, B {_seconds(s.backward)}"
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


def _rows(stages: Iterable[StageProfile]) -> list[tuple[str, ...]]:
    return [
        (
            str(stage.stage),
            *(
                f"{times.median * 1e6:.1f}"
                for times in (
                    stage.forward,
                    stage.input_backward,
                    stage.weight_backward,
                    stage.backward,
                )
            ),
            str(stage.activation_bytes),
            str(stage.kept_for_weight_bytes),
            str(stage.static_bytes),
        )
        for stage in stages
    ]


def _seconds(times: Times) -> str:
    """The median, and the shortest to the longest, in microseconds."""
    least, most = times.spread
    return f"{times.median * 1e6:.0f} us ({least * 1e6:.0f} to {most * 1e6:.0f})"


def _as_json(
    request: ProfileRequest,
    problem: MeasuredProblem,
    stages: tuple[StageProfile, ...],
    where: str,
    target: str,
) -> dict[str, object]:
    return {
        "problem": target,
        "device": where,
        "tick": str(problem.tick),
        "warmup": request.measurement.warmup,
        "repeats": request.measurement.repeats,
        "stages": [asdict(stage) for stage in stages],
    }
