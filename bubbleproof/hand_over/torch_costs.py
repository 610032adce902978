"""What it costs, by a plan's own numbers, that torch's runtime does otherwise than was planned."""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.costs.combinations import CombinationCosts, counted
from bubbleproof.hand_over.handed import PlannedModel

MILLISECOND, GIBIBYTE = 1000, 1 << 30  # microseconds, bytes


def cost_of(planned: PlannedModel, **changes: int | str) -> str:
    """What another level of ZeRO or scope costs, in a sentence's parentheses."""
    other = _other(planned, **changes)
    if other is None or planned.costs is None:
        return "not counted"
    before, after = planned.costs, other
    slowest = [
        max(
            stage.forward + stage.input_backward + stage.weight_backward
            for stage in one.numbers.layers.stages(tuple(planned.layers))
        )
        for one in (before, after)
    ]
    later = after.numbers.step_end - before.numbers.step_end
    later += before.microbatches * (slowest[1] - slowest[0])
    more = after.needed - before.needed
    return f"{later / MILLISECOND:+,.1f} ms a step, {more / GIBIBYTE:+,.1f} GiB on a card"


def kept_gradients(planned: PlannedModel) -> list[str]:
    """Under ZeRO 2 and 3 in a pipeline, FSDP adds gradients up whole until the last microbatch."""
    at = planned.deployment
    if at.zero < 2 or at.pipeline == 1 or at.replicas == 1:
        return []
    first, second = _other(planned, zero=1), _other(planned, zero=2)
    told = "not counted"
    if first is not None and second is not None:
        told = f"0 ms, {(first.needed - second.needed) / GIBIBYTE:+,.1f} GiB on a card"
    return [
        "gradients are shared after the last microbatch of a step, and whole until then, where "
        f"the plan shares those of each ({told})"
    ]


def _other(planned: PlannedModel, **changes: int | str) -> CombinationCosts | None:
    """The numbers of the plan's deployment but for some sizes."""
    if planned.job is None or planned.costs is None:
        return None
    one = counted(planned.job, replace(planned.costs.combination, **changes))  # type: ignore[arg-type]  # sizes by name
    return one if isinstance(one, CombinationCosts) else None
