"""How long each layer, embedding, head, a message and the end of a step take on a cluster.

The passes are those of the model of times (``costs.times``). Added to them here is what replicas
exchange for their weights. Under ZeRO 3 weights are gathered for each forward and each backward of
a microbatch, under 2 and 3 gradients reduced after each. At the end of a step gradients are reduced
once and weights gathered once, as far as that was not done before, and the optimizer runs.

Of a collective of t ms beside computation of c ms a share ``hides`` (of the cluster) is hidden, at
most as much as there is computation: what is left to wait for is

    t - min(hides t, c).

It is beside the pass that it is for; at the end of a step, reducing beside the last backward of one
microbatch and gathering beside the next step's first forward. Of software that
overlaps nothing it is 0, unless the file tells it.

A full backward is shorter than its halves, which the host launches apart; of a split one the half
for the weights takes its time, and the other what is left of the full one. Times are in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import log2

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.kernels import US, KernelTimes, kernel_times
from bubbleproof.costs.times.work import (
    is_scattered,
    moved_around,
    rings_that_leave,
    updated,
    work,
)
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import Weights, embedding_weights, head_weights, layer_weights
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

ELEMENT = 2  # bytes of a number on its way between cards
GB_PER_MS = 1e6  # bytes in a millisecond at 1 GB/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """One microbatch: forward, backward for the input, and for the weights; ``step`` at its end.

    ``optimizer`` is the part of ``step`` without replicas' collectives; ``exchange`` are those at
    the step's end by themselves, nothing of them hidden: half for gathering, half for reducing.
    """

    forward: float = 0.0
    input_backward: float = 0.0
    weight_backward: float = 0.0
    step: float = 0.0
    optimizer: float = 0.0
    exchange: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimes:
    """Runs of layers alike, what the ends have beside, a message between stages, the step's rest.

    Each run tells what one of its layers takes, and how many it has.
    """

    layers: tuple[tuple[Passes, int], ...]
    embedding: Passes
    head: Passes
    message: float
    beside: float

    def step_end(self, cuts: Sequence[Cut]) -> float:
        """What follows the pipeline, on the stage of any of the cuts where that takes longest."""
        return self._longest(cuts, "step") + self.beside

    def rest_end(self, cuts: Sequence[Cut]) -> float:
        """The same without collectives."""
        return self._longest(cuts, "optimizer") + self.beside

    def exchange(self, cuts: Sequence[Cut]) -> float:
        """The collectives at the step's end by themselves."""
        return self._longest(cuts, "exchange")

    def _longest(self, cuts: Sequence[Cut], name: str) -> float:
        ends = accumulate((number for _, number in self.layers), initial=0)
        runs = [
            (*end, getattr(layer, name))
            for end, (layer, _) in zip(pairwise(ends), self.layers, strict=True)
        ]
        longest = 0.0
        for cut in cuts:
            stages = pairwise(accumulate(cut, initial=0))
            parts = [
                sum(max(0, min(b, end) - max(a, begin)) * each for begin, end, each in runs)
                for a, b in stages
            ]
            parts[0] += getattr(self.embedding, name)
            parts[-1] += getattr(self.head, name)
            longest = max(longest, *parts)
        return longest


def cluster_times(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterTimes:
    """The times of a deployment on a cluster."""
    among, kinds = (
        _Replicas(at=at, cluster=cluster),
        {model, *(kind for kind, _ in model.layer_runs)},
    )
    kernels = {kind: _kernels(kind, at, cluster) for kind in kinds}
    times = kernels[model]
    embedding, head = float(times.embedding_each_way), float(times.head_each_pass)
    before = Passes(forward=embedding, weight_backward=embedding)
    behind = Passes(forward=head, input_backward=head, weight_backward=head)
    copied = head_weights(model, at, is_copied=at.pipeline > 1)
    # Of a message the stages are told here: a microbatch's own deployment does not know them.
    sent = float(sent_bytes(model, at, cluster)) / (cluster.constants["message"] * GB_PER_MS)
    return ClusterTimes(
        layers=tuple(
            (among.shared(_layer(kernels[kind]), layer_weights(kind, at)), number)
            for kind, number in model.layer_runs
        ),
        embedding=among.shared(before, embedding_weights(model, at)),
        head=among.shared(behind, copied),
        message=sent + float(times.latency) if at.pipeline > 1 else 0.0,
        beside=float(cluster.constants["iteration"]),
    )


def _kernels(model: Transformer, at: Deployment, cluster: Cluster) -> KernelTimes:
    once = work(model, at.of_microbatch, cluster.runs, cluster.card.cards_per_node)
    return kernel_times(once, cluster.constants)


def _layer(times: KernelTimes) -> Passes:
    late = min(float(times.weight_backward), float(times.backward))
    return Passes(
        forward=float(times.forward),
        input_backward=float(times.backward) - late,
        weight_backward=late,
    )


def sent_bytes(model: Transformer, at: Deployment, cluster: Cluster) -> Number:
    """What a card sends to the next stage for a microbatch, bytes."""
    scattered = is_scattered(at, cluster.runs, cluster.card.cards_per_node)
    return message_bytes(model, at, is_scattered=scattered)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replicas:
    """The cards that hold the same weights, and what they exchange."""

    at: Deployment
    cluster: Cluster

    def shared(self, plain: Passes, weights: Weights) -> Passes:
        """The passes over these weights, with what replicas exchange in each and at the end."""
        zero, runs = self.at.zero, self.cluster.runs
        reduced = 0 if zero > 1 else runs.reduced  # at the end
        gathered = runs.moved_at_the_end(zero) - reduced
        again = self._collective(weights, ELEMENT) if zero == 3 else 0.0
        adding = self._collective(weights, runs.reduced) if zero > 1 else 0.0
        backward = plain.input_backward + plain.weight_backward
        at_the_end = self._left(self._moving(weights, reduced), backward)
        at_the_end += self._left(self._moving(weights, gathered), plain.forward)
        return Passes(
            forward=plain.forward + self._left(again, plain.forward),
            input_backward=plain.input_backward + self._left(again, plain.input_backward)
            if plain.input_backward
            else 0.0,
            weight_backward=plain.weight_backward + self._left(adding, plain.weight_backward),
            step=at_the_end + self._optimizer(weights),
            optimizer=self._optimizer(weights),
            exchange=self._moving(weights, reduced + gathered),
        )

    def _left(self, collective: float, computation: float) -> float:
        """What of a collective is not hidden beside the computation."""
        return collective - min(self.cluster.hides * collective, computation)

    def _collective(self, weights: Weights, size: int) -> float:
        """Gathering or reducing these weights, of so many bytes each, by itself."""
        latency = log2(self.at.replicas) * self.cluster.constants["collective"] * US
        return latency + self._moving(weights, size)

    def _moving(self, weights: Weights, size: int) -> float:
        """Moving so many bytes of each weight to its replicas, in a node or over the network."""
        constants, moved = self.cluster.constants, size * moved_around(weights, self.at)
        if rings := rings_that_leave(self.at, self.cluster.card.cards_per_node):
            return moved * rings / (constants["network_gradient"] * GB_PER_MS)
        return moved / (constants["gradient"] * GB_PER_MS)

    def _optimizer(self, weights: Weights) -> float:
        moved = updated(weights, self.at, self.cluster.runs)
        return moved / (self.cluster.constants["memory"] * GB_PER_MS)
