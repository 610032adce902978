"""How long each layer, embedding, head, a message and the end of a step take on a cluster.

The passes are those of the model of times (``costs.times.kernels``), with what replicas exchange
for their weights (``costs.times.replicas``). ``estimate`` makes its iterations of them, a plan its
pipelines. Times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise

import numpy as np

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.kernels import KernelTimes, kernel_times, message
from bubbleproof.costs.times.replicas import Passes, passes, replicas
from bubbleproof.costs.times.work import Floats, is_scattered, work
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import Weights, embedding_weights, head_weights, layer_weights
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimes:
    """Each run of layers alike, what the ends have beside, a message between stages, what a step
    has beside."""

    layers: tuple[tuple[Passes[float], int], ...]
    embedding: Passes[float]
    head: Passes[float]
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
        return max((each for cut in cuts for each in self.stages(cut, name)), default=0.0)

    def stages(self, cut: Cut, name: str) -> list[float]:
        """A field of ``Passes`` of each stage of a cut, with the ends.

        Parameters
        ----------
        cut
            How many layers each stage has.
        name
            The field, or property.
        """
        ends = pairwise(accumulate((number for _, number in self.layers), initial=0))
        runs = [
            (*end, float(getattr(layer, name)))
            for end, (layer, _) in zip(ends, self.layers, strict=True)
        ]
        found = [
            sum(max(0, min(b, end) - max(a, begin)) * each for begin, end, each in runs)
            for a, b in pairwise(accumulate(cut, initial=0))
        ]
        found[0] += float(getattr(self.embedding, name))
        found[-1] += float(getattr(self.head, name))
        return found


def cluster_times(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterTimes:
    """The times of a deployment on a cluster."""
    runs = model.layer_runs
    kernels = {kind: _kernels(kind, at, cluster) for kind in dict(runs)}
    ends = kernels[runs[-1][0]]
    embedding, head = ends.embedding_each_way, ends.head_each_pass
    copied = head_weights(model, at, is_copied=at.pipeline > 1)
    slow = cluster.constants["factor"]
    sent = message(float(sent_bytes(model, at, cluster)), cluster.runs.overlaps, cluster.constants)

    def shared(times: tuple[Floats, Floats, Floats], weights: Weights) -> Passes[float]:
        of = replicas(weights, at, cluster.runs, cluster.card.cards_per_node)
        if cluster.hidden is None:
            found = passes(*times, of, cluster.constants)
        else:
            exposed = dict.fromkeys(("exposed_gradient", "exposed_shard"), 1 - cluster.hidden)
            is_told = replace(of, overlaps=np.asarray(1.0), prefetches=np.asarray(1.0))
            found = passes(*times, is_told, {**cluster.constants, **exposed})
        return Passes(**{field.name: float(getattr(found, field.name)) for field in fields(Passes)})

    each = {kind: shared(_layer(kernels[kind], kind), layer_weights(kind, at)) for kind in kernels}
    return ClusterTimes(
        layers=tuple((each[kind], number) for kind, number in runs),
        embedding=shared(
            (embedding, embedding * (not model.frozen), embedding * (not model.frozen)),
            embedding_weights(model, at),
        ),
        head=shared((head, 2 * head, head), copied),
        message=slow * float(sent) if at.pipeline > 1 else 0.0,
        beside=float(cluster.constants["iteration"]),
    )


def _kernels(model: Transformer, at: Deployment, cluster: Cluster) -> KernelTimes:
    once = at.of_microbatch.seen_by(model)
    done = work(model, once, cluster.runs, cluster.card.cards_per_node)
    return kernel_times(done, cluster.constants)


def _layer(times: KernelTimes, kind: Transformer) -> tuple[Floats, Floats, Floats]:
    """Forward, backward and what of it is for weights; frozen layers have less of it."""
    if not kind.frozen:
        return times.forward, times.backward, times.weight_backward
    none = 0 * times.backward
    return (
        times.forward,
        none if kind.frozen == "all" else times.backward - times.weight_backward,
        none,
    )


def sent_bytes(model: Transformer, at: Deployment, cluster: Cluster) -> Number:
    """What a card sends to the next stage for a microbatch, bytes."""
    scattered = is_scattered(at, cluster.runs, cluster.card.cards_per_node)
    return message_bytes(model, at, is_scattered=scattered)
