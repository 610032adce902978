"""``bubbleproof profile``: measure a model's stages on a device and write them as a problem."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bubbleproof.commands.output import HOLDS, print_json, print_table, say
from bubbleproof.commands.replaying.replay_files import print_failure
from bubbleproof.commands.replaying.replay_options import ProfileRequest
from bubbleproof.report.profiled_model import ProfiledPipeline, StageMeasurement, profiled_model

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.profiling import StageProfile


def run_profile(request: ProfileRequest) -> int:
    """Measure, write the problem file and print the times.

    Raises ``ValueError`` for what cannot be measured or be a problem.
    """
    spec, target = request.model.spec(), request.output
    request.model.require_meaning()
    pipeline = ProfiledPipeline(**asdict(request.pipeline))
    measurement = StageMeasurement(**asdict(request.measurement))
    hears = None if request.json else say
    try:
        found = profiled_model(spec, pipeline, measurement, target, hears)
    except RuntimeError as error:  # a stage that fails, or does not end
        return print_failure(target, str(error), json=request.json)
    if request.json:
        print_json(found.to_dict())
    else:
        print_table(
            f"{target}: 1 tick = {found.tick}, median of {measurement.repeats} rounds on "
            f"{found.device}",
            ("stage", "F us", "I us", "W us", "B us", "bytes F to I", "bytes I to W", "static"),
            map(_row, found.stages),
        )
    return HOLDS


def _row(stage: StageProfile) -> tuple[str, ...]:
    times = (stage.forward, stage.input_backward, stage.weight_backward, stage.backward)
    sizes = (stage.activation_bytes, stage.kept_for_weight_bytes, stage.static_bytes)
    micros = (f"{each.median * 1e6:.1f}" for each in times)
    return (str(stage.stage), *micros, *map(str, sizes))
