"""A model on a cluster as the layers of a pipeline: ticks (microseconds) and bytes.

What the planner and a problem file need: one layer, the embedding and the head with their ticks,
activation and state; the latency of a message; the memory that is left to them on a card; and what
follows the pipeline at the end of a step. A layer that is recomputed keeps what its scope leaves;
beside, each card has room for one layer in full while it is made again, and under ZeRO 3 for the
gathered weights of two. Those come off the card's memory, as does the reserve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.plain_times import PassTimes, plain_times
from bubbleproof.costs.saved_bytes import embedding_saved, head_saved, layer_saved, message_bytes
from bubbleproof.costs.state import state_bytes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    Weights,
    embedding_weights,
    head_weights,
    layer_weights,
)
from bubbleproof.theory.pipelines.layer_cuts import Layers, Part

TICKS = 1_000_000  # in a second


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayers:
    """``latency`` and ``step_end`` in ticks, ``message`` and ``capacity`` in bytes of one card."""

    layers: Layers
    latency: int
    message: int
    capacity: int
    step_end: int


def cluster_layers(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterLayers:
    """The numbers of a deployment. Raises ``ValueError`` where the model cannot be cut so."""
    at.require(model)
    cluster.require(at)
    times = plain_times(model, at, cluster)
    is_alone = at.pipeline == 1
    return ClusterLayers(
        layers=Layers(
            number=model.layers,
            layer=_part(times.layer, layer_saved(model, at), layer_weights(model, at), at),
            embedding=_part(
                times.embedding, embedding_saved(model, at), embedding_weights(model, at), at
            ),
            head=_part(
                times.head,
                head_saved(model, at),
                head_weights(model, at, is_copied=not is_alone),
                at,
            ),
        ),
        latency=ceil(times.message * TICKS),
        message=ceil(message_bytes(model, at)),
        capacity=cluster.memory - cluster.reserve - _workspace(model, at),
        step_end=ceil(times.step_end * TICKS),
    )


def _part(times: PassTimes, saved: Number, weights: Weights, at: Deployment) -> Part:
    back, late = _ticks(times.input_backward), _ticks(times.weight_backward)
    return Part(
        forward=_ticks(times.forward),
        backward=back + late,
        input_backward=back,
        weight_backward=late,
        activation=ceil(saved),
        static=state_bytes(weights, at),
    )


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS)


def _workspace(model: Transformer, at: Deployment) -> int:
    """Bytes that a card needs now and then beside state and kept activations."""
    found = 0
    if at.scope != "none":
        found += ceil(layer_saved(model, at, "none") - layer_saved(model, at))
    if at.zero == 3:
        found += ceil(2 * at.bytes_of.weight * layer_weights(model, at).total)
    return found
