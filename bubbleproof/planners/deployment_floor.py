"""What no shape of a deployment can beat, from its numbers alone: before any shape is made.

With m microbatches on p ranks, whatever the cut into stages, the chunks and the slices,

    makespan >= m (sum over layers, embedding and head of tF + tB) / p:

the ranks together do all of it, and one of them at least its p-th part. One microbatch alone is
held by all ranks together, with all the model's state, when its last forward begins; so a model
whose state and activations are more than the ranks' capacity together fits in no shape
(``verify.candidates.rank_claims`` tells both of one rank, and is what proofs are made of).
"""

from __future__ import annotations

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers


def floor_of(one: CombinationCosts, off: int = 0) -> int:
    """No iteration of the deployment takes less ticks; ``NEVER`` where none fits.

    Parameters
    ----------
    off
        Ticks by which F, I and W of a layer, embedding or head may each be less: by a rounding to
        other shares, as where samples are not cut into slices.
    """
    numbers, ranks = one.numbers, one.combination.pipeline
    if _held(numbers) > ranks * numbers.capacity:
        return NEVER
    parts = _parts(numbers.layers)
    ticks = sum(max(0, part.forward + part.backward - 3 * off) for part in parts)
    return -(-one.microbatches * ticks // ranks) + numbers.step_end


def _held(numbers: ClusterLayers) -> int:
    return sum(part.static + part.activation for part in _parts(numbers.layers))


def _parts(layers: Layers) -> list[LayerPart]:
    return [*[layers.layer] * layers.number, layers.embedding, layers.head]
