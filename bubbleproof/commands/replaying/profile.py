"""``bubbleproof profile``: measure a model's stages on a device and write them as a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import HOLDS, print_json, print_table, say
from bubbleproof.commands.replaying.replay_files import print_failure
from bubbleproof.commands.replaying.replay_options import PipelineOptions, ProfileRequest
from bubbleproof.commands.replaying.torch_limits import room_needed, torch_needed
from bubbleproof.formats.errors import about
from bubbleproof.formats.files import write_text
from bubbleproof.formats.problem_toml import problem_of, problem_text, read_problem
from bubbleproof.formats.values import Tick, fitting_tick
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_limits import require_room
from bubbleproof.theory.pipelines.limits import require_size

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.profiling import StageProfile, Times


def run_profile(request: ProfileRequest) -> int:
    """Measure, write the problem file and print the times.

    Raises ``ValueError`` for what cannot be measured or be a problem.
    """
    spec, target, pipeline = request.model.spec(), request.output, request.pipeline
    measurement = request.measurement
    request.model.require_meaning()
    if Path(target).suffix.lower() != ".toml":
        raise ValueError(f"profile writes a problem file ending in .toml, got {target!r}")
    for name, value in (("ranks", pipeline.ranks), ("chunks", pipeline.chunks)):
        if value < 1:
            raise ValueError(f"profile {name} must be 1 or more, got {value}")
    require_size(
        ranks=pipeline.ranks, chunks=pipeline.chunks, microbatches=max(1, pipeline.microbatches)
    )
    given_tick = None if measurement.tick is None else Tick.parsed(measurement.tick)
    _require_problem(pipeline, target)
    largest = max([spec.layers] if isinstance(spec.layers, int) else spec.layers)
    require_room(
        replace(spec, layers=largest), num_stages=1, num_slices=1, device=measurement.device
    )
    with torch_needed():
        from bubbleproof.reference_exec.evidence.profiling import profile_stages
        from bubbleproof.reference_exec.runtime.cuda import open_device
    device = open_device(measurement.device)
    try:
        with room_needed():
            stages = profile_stages(
                spec,
                pipeline.ranks * pipeline.chunks,
                device=device,
                warmup=measurement.warmup,
                repeats=measurement.repeats,
                progress=None if request.json else say,
            )
    except RuntimeError as error:  # a stage that fails, or does not end
        return print_failure(target, str(error), json=request.json)
    tick = given_tick or fitting_tick([s for times in _seconds(pipeline, stages) for s in times])
    remarks = _remarks(request, stages, device.description)
    with written_together(None, target) as (_, new):
        write_text(new, problem_text(measured_content(pipeline, stages, tick, target), remarks))
        read_problem(new)  # says in one line what no problem can have, such as too little memory
    if request.json:
        told = {"problem": target, "device": device.description, "tick": str(tick)}
        rounds = {"warmup": measurement.warmup, "repeats": measurement.repeats}
        print_json({**told, **rounds, "stages": [asdict(stage) for stage in stages]})
    else:
        print_table(
            f"{target}: 1 tick = {tick}, median of {measurement.repeats} rounds on "
            f"{device.description}",
            ("stage", "F us", "I us", "W us", "B us", "bytes F to I", "bytes I to W", "static"),
            map(_row, stages),
        )
    return HOLDS


def _require_problem(pipeline: PipelineOptions, target: str) -> None:
    """Raise ``UnusableInput`` for a pipeline that no times could make a problem of."""
    ticks = dict.fromkeys(_durations(pipeline), [1] * (pipeline.ranks * pipeline.chunks))
    with about(target):
        problem_of(_content(pipeline, target, unit="s", durations=ticks, memory={}), name="")


def _durations(pipeline: PipelineOptions) -> dict[str, str]:
    """The keys of ``[durations]``, and which times of a stage they tell."""
    if pipeline.whole:
        return {"forward": "forward", "backward": "backward"}
    return {"forward": "forward", "input": "input_backward", "weight": "weight_backward"}


def _seconds(pipeline: PipelineOptions, stages: Sequence[StageProfile]) -> list[list[float]]:
    """The median of each stage, a row for each key of ``[durations]``."""
    names = _durations(pipeline).values()
    return [[getattr(stage, name).median for stage in stages] for name in names]


def measured_content(
    pipeline: PipelineOptions, stages: Sequence[StageProfile], tick: Tick, target: str
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
    pipeline: PipelineOptions, target: str, *, memory: Mapping[str, list[int]], **told: object
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
    request: ProfileRequest, stages: tuple[StageProfile, ...], where: str
) -> tuple[str, ...]:
    import torch

    spec, measurement = request.model.spec(), request.measurement
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


def _row(stage: StageProfile) -> tuple[str, ...]:
    times = (stage.forward, stage.input_backward, stage.weight_backward, stage.backward)
    sizes = (stage.activation_bytes, stage.kept_for_weight_bytes, stage.static_bytes)
    micros = (f"{each.median * 1e6:.1f}" for each in times)
    return (str(stage.stage), *micros, *map(str, sizes))


def _spread(times: Times) -> str:
    """The median, and the shortest to the longest, in microseconds."""
    least, most = times.spread
    return f"{times.median * 1e6:.0f} us ({least * 1e6:.0f} to {most * 1e6:.0f})"
