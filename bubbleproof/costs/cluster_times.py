"""How long a layer, embedding, head, a message and the end of a step take on a cluster.

The passes are those of the model of times (``costs.times``). Added to it here: under ZeRO 3 a
layer's weights are gathered for each pass, under 2 and 3 its gradients reduced after each
microbatch, beside the computation: whatever takes longer counts. Experts exchange the tokens'
copies twice in each direction. At the end of a step come the gradients' reduction and the
optimizer, on the stage where that takes longest; nothing of it is overlapped with the pipeline.

A full backward is shorter than its halves, which the host launches apart; of a split one the half
for the weights takes its time, and the other what is left of the full one. Times are in
milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.iteration import ends_of
from bubbleproof.costs.times.kernels import KernelTimes, kernel_times, step_times
from bubbleproof.costs.times.work import step, work
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import layer_weights

ELEMENT = 2  # bytes of a number on its way between cards
GB_PER_MS = 1e6  # bytes in a millisecond at 1 GB/s
THIRD = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """One microbatch: forward, backward for the input, and for the weights."""

    forward: float = 0.0
    input_backward: float = 0.0
    weight_backward: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimes:
    """One layer, what the ends have beside, a message between stages, and a step's end."""

    layer: Passes
    embedding: Passes
    head: Passes
    message: float
    step_end: float


def cluster_times(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterTimes:
    """The times of a deployment on a cluster."""
    once = work(model, at.of_microbatch, cluster.runs, cluster.card.cards_per_node)
    times = kernel_times(once, cluster.constants)
    embedding, head = float(times.embedding), float(times.head)
    message = float(times.message + times.latency) if at.pipeline > 1 else 0.0
    return ClusterTimes(
        layer=_layer(model, at, cluster, times),
        embedding=Passes(forward=embedding / 2, weight_backward=embedding / 2),
        head=Passes(
            forward=head * THIRD, input_backward=head * THIRD, weight_backward=head * THIRD
        ),
        message=message,
        step_end=_step_end(model, at, cluster),
    )


def _layer(model: Transformer, at: Deployment, cluster: Cluster, times: KernelTimes) -> Passes:
    aside = _exchanges(model, at, cluster)
    late = min(float(times.weight_backward), float(times.backward))
    forward = float(times.forward) + aside
    back = float(times.backward) - late + aside
    gathered, reduced = _sharding(model, at, cluster)
    return Passes(
        forward=max(forward, gathered),
        input_backward=max(back, gathered),
        weight_backward=max(late, reduced),
    )


def _sharding(model: Transformer, at: Deployment, cluster: Cluster) -> tuple[float, float]:
    """Of a layer, gathering its weights (ZeRO 3) and reducing its gradients (ZeRO 2 and 3)."""
    if at.zero < 2 or at.replicas == 1:
        return 0.0, 0.0
    moved = (at.replicas - 1) / at.replicas * float(layer_weights(model, at).dense) * ELEMENT
    once = _between_replicas(moved, at, cluster)
    return (once if at.zero == 3 else 0.0), once


def _exchanges(model: Transformer, at: Deployment, cluster: Cluster) -> float:
    """The experts' exchanges of one direction."""
    if at.expert == 1:
        return 0.0
    tokens = at.micro_batch * at.sequence / at.context / at.tensor
    copies = tokens * model.active * model.hidden * ELEMENT * (at.expert - 1) / at.expert
    return 2 * _between_replicas(copies, at, cluster)


def _between_replicas(moved: float, at: Deployment, cluster: Cluster) -> float:
    """Moving so many bytes of each card to its replicas, within a node or over the network."""
    constants, per_node = cluster.constants, cluster.card.cards_per_node
    if at.tensor * at.replicas <= per_node:
        return moved / (constants["gradient"] * GB_PER_MS)
    rings = min(at.tensor, per_node)  # they share their node's network
    return moved * rings / (constants["network_gradient"] * GB_PER_MS)


def _step_end(model: Transformer, at: Deployment, cluster: Cluster) -> float:
    ends = ends_of(at.pipeline)
    per_node = cluster.card.cards_per_node
    steps = [step(model, at, cluster.runs, per_node, **end) for end in (ends[0], ends[-1])]
    longest = max(float(step_times(each, cluster.constants)) for each in steps)
    return longest + float(cluster.constants["iteration"])
