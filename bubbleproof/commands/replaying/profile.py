"""``bubbleproof profile``: measure a model's stages on a device and write them as a problem."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bubbleproof.commands.output import HOLDS, print_json, print_table, print_text, say
from bubbleproof.commands.replaying.replay_files import print_failure
from bubbleproof.commands.replaying.replay_options import ProfileRequest
from bubbleproof.report.profiled_model import ProfiledPipeline, StageMeasurement, profiled_model

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.profiling import StageProfile, Times


def run_profile(request: ProfileRequest) -> int:
    """Measure, write the problem file and print the times.

    Raises ``ValueError`` for what cannot be measured or be a problem.
    """
    spec, target = request.model.spec(), request.output
    request.model.require_meaning()
    pipeline = ProfiledPipeline(**asdict(request.pipeline))
    measurement = StageMeasurement(**asdict(request.measurement))
    loudness = request.loudness
    hears = None if request.json or loudness.quiet else say
    try:
        found = profiled_model(spec, pipeline, measurement, target, hears)
    except RuntimeError as error:  # a stage that fails, or does not end
        return print_failure(target, str(error), json=request.json)
    if request.json:
        print_json(found.to_dict())
        return HOLDS
    told = f"{target}: 1 tick = {found.tick}, median of {measurement.repeats} rounds on "
    told += found.device
    if loudness.quiet:
        print_text(told)
    else:
        heads = ("stage", "F us", "I us", "W us", "B us", "bytes F to I", "bytes I to W", "static")
        rows = (_row(stage, with_spread=loudness.verbose) for stage in found.stages)
        print_table(told, heads, rows)
    return HOLDS


def _row(stage: StageProfile, *, with_spread: bool) -> tuple[str, ...]:
    times = (stage.forward, stage.input_backward, stage.weight_backward, stage.backward)
    sizes = (stage.activation_bytes, stage.kept_for_weight_bytes, stage.static_bytes)
    return (str(stage.stage), *(_micros(each, with_spread) for each in times), *map(str, sizes))


def _micros(times: Times, with_spread: bool) -> str:
    """The median in microseconds, perhaps with the least and the most."""
    least, most = (f"{each * 1e6:.1f}" for each in times.spread)
    return f"{times.median * 1e6:.1f}" + (f" ({least} to {most})" if with_spread else "")
