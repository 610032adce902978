"""Where the time of an iteration goes, on the rank that computes longest.

An iteration is, to the microsecond, the sum of

compute
    what that rank's forwards and backwards take where no card waits for another;
tensor
    what collectives of tensor groups add to them, as far as they are not hidden;
exchange
    what context and expert parallelism, and ZeRO 2 and 3, add to them in the same way;
bubble
    what the pipeline's makespan has beyond: fill, drain, imbalance and messages;
gradients
    what the step's end waits for gradients and weights between replicas;
optimizer
    the rest of the step's end.

The first three are told apart by the times of the same layers on a cluster whose constants leave
the collectives out. All collectives have one constant for their start and one for waiting: beside
a tensor group those of ZeRO 2 and 3 count as the tensor group's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from bubbleproof.costs.cluster_layers import ClusterLayers, JobLayers
from bubbleproof.costs.combinations import CombinationCosts, TrainingJob, counted_deployment
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

NEVER_WAITS = 1e12  # GB/s
AT_ONCE = 1e-9  # us, ms
OF_TENSOR = {
    "group": NEVER_WAITS, "network_group": NEVER_WAITS, "collective": AT_ONCE, "wait": AT_ONCE,
}  # fmt: skip
OF_OTHERS = {"gradient": NEVER_WAITS, "network_gradient": NEVER_WAITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeParts:
    """Microseconds of an iteration by what they are for; see the module's text."""

    compute: int
    tensor: int
    exchange: int
    bubble: int
    gradients: int
    optimizer: int

    @property
    def iteration(self) -> int:
        """Their sum."""
        return sum(self.named.values())

    @property
    def named(self) -> Mapping[str, int]:
        """Each by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_beat(self, best: TimeParts) -> str:
        """What would have to change for this one to be as short as the best.

        The one part that would do, where there is one: that which is longest beyond the best's.
        """
        excess = self.iteration - best.iteration
        if excess <= 0:
            return "nothing: it is as short"
        beyond = {name: took - best.named[name] for name, took in self.named.items()}
        name = max(beyond, key=lambda part: beyond[part])
        took, least = self.named[name], self.named[name] - excess
        if least >= 0:
            return f"{name} {_ms(least)} ms or less, not {_ms(took)}"
        return f"more than {name}: {_ms(excess)} ms less in all"


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:,.1f}"


def time_parts(
    training: TrainingJob, one: CombinationCosts, pipeline: Pipeline, cut: Cut, makespan: int
) -> TimeParts:
    """The parts of a deployment's iteration, whose pipeline has this cut and makespan.

    Parameters
    ----------
    makespan
        Of the pipeline, in microseconds.
    """
    numbers = one.numbers
    whole = _loads(numbers, pipeline, cut)
    rank = max(whole, key=lambda each: whole[each])
    alone = _loads(_numbers(training, one, OF_TENSOR | OF_OTHERS), pipeline, cut)[rank]
    with_tensor = alone
    if one.combination.tensor > 1:
        with_tensor = _loads(_numbers(training, one, OF_OTHERS), pipeline, cut)[rank]
    times = one.microbatches
    return TimeParts(
        compute=times * alone,
        tensor=times * (with_tensor - alone),
        exchange=times * (whole[rank] - with_tensor),
        bubble=makespan - times * whole[rank],
        gradients=numbers.step_end - numbers.rest_end,
        optimizer=numbers.rest_end,
    )


def _numbers(
    training: TrainingJob, one: CombinationCosts, changed: Mapping[str, float]
) -> ClusterLayers:
    """The deployment's numbers by other constants."""
    cluster = training.cluster
    cluster = cluster.with_changes(constants={**cluster.constants, **changed})
    at = counted_deployment(training, one.combination)
    numbers = JobLayers(training.model, cluster, training.shares)
    return numbers.of(at, training.rule, one.microbatches)


def _loads(numbers: ClusterLayers, pipeline: Pipeline, cut: Cut) -> dict[int, int]:
    """Ticks of a microbatch on each rank."""
    found: dict[int, int] = {}
    for part, rank in zip(numbers.layers.stages(cut), pipeline.stage_ranks, strict=True):
        found[rank] = found.get(rank, 0) + part.forward + part.backward
    return found
