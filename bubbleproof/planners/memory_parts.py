"""What a deployment's cards hold at their fullest, rank by rank and by kind.

A rank's state are the weights of its stages, their gradients and what the optimizer keeps, each
shared by the ZeRO level (``costs.state``); its activations are what its schedule holds beside that
at the peak. Buffers are the software's bytes and what a pass needs for a moment; the reserve is
left to driver and libraries. The kinds add up to the bytes of the card that are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob, counted_deployment
from bubbleproof.costs.weights import Weights, embedding_weights, head_weights, layer_weights
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """Bytes of one card by what they are for."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int
    reserve: int

    @property
    def named(self) -> Mapping[str, int]:
        """Each by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(self.named.values())


def memory_parts(
    training: TrainingJob,
    one: CombinationCosts,
    pipeline: Pipeline,
    cut: Cut,
    peaks: Sequence[int],
) -> tuple[MemoryParts, ...]:
    """Those of each rank, whose schedule holds so many bytes at its peak.

    Parameters
    ----------
    peaks
        Bytes, state included, one for each rank.
    """
    stages, reserve = one.numbers.layers.stages(cut), training.cluster.reserve
    held = _weights(training, one, cut)
    found = []
    for rank, peak in enumerate(peaks):
        own = [stage for stage, at in enumerate(pipeline.stage_ranks) if at == rank]
        state = sum(stages[stage].static for stage in own)
        weights, gradients = _bytes(training, one, [held[stage] for stage in own])
        found.append(
            MemoryParts(
                weights=weights,
                gradients=gradients,
                optimizer=state - weights - gradients,
                activations=peak - state,
                buffers=one.numbers.beside - reserve,
                reserve=reserve,
            )
        )
    return tuple(found)


def _weights(training: TrainingJob, one: CombinationCosts, cut: Cut) -> list[Weights]:
    """The parameters of each stage on one card."""
    model, at = training.model, counted_deployment(training, one.combination)
    layers = [layer_weights(kind, at) for kind, number in model.layer_runs for _ in range(number)]
    marks = [sum(cut[:stage]) for stage in range(len(cut) + 1)]
    found = [sum(layers[a:b], Weights()) for a, b in pairwise(marks)]
    found[0] += embedding_weights(model, at)
    found[-1] += head_weights(model, at, is_copied=at.pipeline > 1)
    return found


def _bytes(
    training: TrainingJob, one: CombinationCosts, held: Sequence[Weights]
) -> tuple[int, int]:
    """Of weights and of gradients, by their precision and the ZeRO level."""
    at, found = counted_deployment(training, one.combination), []
    dense = sum(Fraction(each.dense) for each in held)
    experts = sum(Fraction(each.experts) for each in held)
    for size, level in ((at.bytes_of.weight, 3), (at.bytes_of.gradient, 2)):
        replicas = at.replicas if at.zero >= level else 1
        sharers = Fraction(replicas, at.expert if at.zero >= level else 1)
        found.append(int(size * (dense / replicas + experts / sharers)))
    weights, gradients = found
    return weights, gradients
