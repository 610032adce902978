"""How long a layer, the head, a message and the end of a step take: a plain model of a cluster.

Products take FLOPs / (FLOPS x efficiency); what operations put out is written and read once at the
memory's bandwidth. Beside: per layer and direction two all-reduces of a token's hidden numbers
among tensor-parallel cards (one in a parallel layer), of 2 (t-1)/t of their bytes each; two
all-to-alls of the tokens' copies among experts. Under ZeRO 3 a layer's weights are gathered in each
direction, under 2 and 3 its gradients reduced after each microbatch, beside the computation:
whatever takes longer counts. At the end of a step come what is left to reduce and gather, and the
optimizer. Nothing of that is overlapped with the pipeline: it is an upper estimate.

What a scope recomputes is part of the backward for the input. Times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.flops import Flops, head_flops, layer_flops
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import head_saved, layer_saved, message_bytes
from bubbleproof.costs.state import stage_weights
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import layer_weights

ELEMENT = 2  # bytes of a number on its way between cards


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTimes:
    """Seconds of one microbatch: forward, backward for the input, and for the weights."""

    forward: float = 0.0
    input_backward: float = 0.0
    weight_backward: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimes:
    """Seconds of one layer, the embedding and the head, of a message, and of a step's end."""

    layer: PassTimes
    embedding: PassTimes
    head: PassTimes
    message: float
    step_end: float


def plain_times(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterTimes:
    """The times of a deployment on a cluster."""
    return ClusterTimes(
        layer=_layer(model, at, cluster),
        embedding=_embedding(model, at, cluster),
        head=_passes(head_flops(model, at), head_saved(model, at), cluster),
        message=_message(model, at, cluster),
        step_end=_step_end(model, at, cluster),
    )


def _passes(flops: Flops, written: Number, cluster: Cluster, aside: float = 0.0) -> PassTimes:
    """Products, traffic of what is put out, and seconds of collectives in each direction."""
    speed = cluster.flops * cluster.efficiency
    traffic = 2 * float(written) / cluster.memory_bandwidth
    return PassTimes(
        forward=float(flops.forward) / speed + traffic + aside,
        input_backward=float(flops.input_backward + flops.again) / speed + 2 * traffic + aside,
        weight_backward=float(flops.weight_backward) / speed,
    )


def _layer(model: Transformer, at: Deployment, cluster: Cluster) -> PassTimes:
    kept = layer_saved(model, at, "none")
    passes = _passes(layer_flops(model, at), kept, cluster, _exchanges(model, at, cluster))
    if at.zero < 2 or at.replicas == 1:
        return passes
    weights = float(layer_weights(model, at).dense)
    part = (at.replicas - 1) / at.replicas / cluster.link(at.tensor * at.replicas)
    gather = weights * ELEMENT * part if at.zero == 3 else 0.0
    return PassTimes(
        forward=max(passes.forward, gather),
        input_backward=max(passes.input_backward, gather),
        weight_backward=max(passes.weight_backward, weights * ELEMENT * part),
    )


def _exchanges(model: Transformer, at: Deployment, cluster: Cluster) -> float:
    """Seconds of the collectives within a layer, of one direction."""
    tokens = at.micro_batch * at.sequence / at.context
    whole = tokens * model.hidden * ELEMENT
    found = 0.0
    if at.tensor > 1:
        each = 2 * (at.tensor - 1) / at.tensor * whole / cluster.link(at.tensor)
        found += (1 if model.parallel else 2) * (each + cluster.latency)
    if at.expert > 1:
        copies = model.active * whole * (at.expert - 1) / at.expert / at.tensor
        found += 2 * (copies / cluster.link(at.tensor * at.replicas) + cluster.latency)
    return found


def _embedding(model: Transformer, at: Deployment, cluster: Cluster) -> PassTimes:
    moved = 2 * float(message_bytes(model, at)) / cluster.memory_bandwidth
    return PassTimes(forward=moved, weight_backward=moved)


def _message(model: Transformer, at: Deployment, cluster: Cluster) -> float:
    if at.pipeline == 1:
        return 0.0
    return cluster.latency + float(message_bytes(model, at)) / cluster.link(at.devices)


def _step_end(model: Transformer, at: Deployment, cluster: Cluster) -> float:
    """Reducing gradients, gathering weights and the optimizer, on the fullest stage."""
    layers = -(-model.layers // at.pipeline)
    ends = ((True, at.pipeline == 1), (False, True)) if at.pipeline > 1 else ((True, True),)
    return max(_stage_end(model, at, cluster, layers, *end) for end in ends)


def _stage_end(
    model: Transformer, at: Deployment, cluster: Cluster, layers: int, first: bool, last: bool
) -> float:
    weights = stage_weights(model, at, layers=layers, is_first=first, is_last=last)
    sizes, n = at.bytes_of, at.replicas
    once = (n - 1) / n * float(weights.dense) / cluster.link(at.tensor * n)
    reduced = 2 * sizes.gradient if at.zero == 0 else sizes.gradient if at.zero == 1 else 0
    gathered = sizes.weight if at.zero in (1, 2) else 0
    owned = Fraction(weights.total) / (n if at.zero else 1)
    moved = float(owned) * (2 * sizes.optimizer + sizes.gradient + sizes.weight)
    return once * (reduced + gathered) + moved / cluster.memory_bandwidth
