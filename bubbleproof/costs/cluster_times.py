"""How long each layer, embedding, head, a message and the end of a step take on a cluster.

The passes are those of the model of times (``costs.times.kernels``), with what replicas exchange
for their weights (``costs.times.replicas``). ``estimate`` makes its iterations of them, a plan its
pipelines. Times are in milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import accumulate, pairwise

import numpy as np

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.kernels import KernelTimes, kernel_times, message
from bubbleproof.costs.times.replicas import Passes, Replicas, passes, replicas
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
        each = [float(getattr(layer, name)) for layer, _ in self.layers]
        counts = _counts(tuple(number for _, number in self.layers), cut)
        found = [float(sum(number * each[run] for run, number in here)) for here in counts]
        found[0] += float(getattr(self.embedding, name))
        found[-1] += float(getattr(self.head, name))
        return found


@lru_cache(maxsize=4096)
def _counts(runs: tuple[int, ...], cut: Cut) -> list[list[tuple[int, int]]]:
    """Of each stage of a cut: the runs that it has layers of, and how many."""
    bounds = list(accumulate(runs, initial=0))
    return [
        [
            (run, min(end, bounds[run + 1]) - max(begin, bounds[run]))
            for run in range(bisect_right(bounds, begin) - 1, bisect_left(bounds, end))
        ]
        for begin, end in pairwise(accumulate(cut, initial=0))
    ]


class JobTimes:
    """The times of a model's deployments on a cluster; what several have in common is kept."""

    def __init__(self, model: Transformer, cluster: Cluster) -> None:
        self.model, self.cluster, self.runs = model, cluster, model.layer_runs
        self.kinds = list(dict.fromkeys(kind for kind, _ in self.runs))
        self.places = [self.kinds.index(kind) for kind, _ in self.runs]
        self.microbatch, self.exchanged = cache(self._microbatch), cache(self._exchanged)

    def of(self, at: Deployment) -> ClusterTimes:
        """The times of one of them."""
        runs, constants = self.cluster.runs, self.cluster.constants
        found = self._shared(self.microbatch(at.of_microbatch), self.exchanged(at.of_weights))
        embedding, *kinds, head = found
        sent = float(sent_bytes(self.model, at, self.cluster))
        sent = constants["factor"] * float(message(sent, runs.overlaps, constants))
        each = zip(self.places, self.runs, strict=True)
        return ClusterTimes(
            layers=tuple((kinds[place], number) for place, (_, number) in each),
            embedding=embedding,
            head=head,
            message=sent if at.pipeline > 1 else 0.0,
            beside=float(constants["iteration"]),
        )

    def parts(self, times: ClusterTimes) -> list[Passes[float]]:
        """Those of the embedding, of a layer of each kind and of the head.

        Parameters
        ----------
        times
            Of one of the deployments.
        """
        kinds = [times.layers[self.places.index(n)][0] for n in range(len(self.kinds))]
        return [times.embedding, *kinds, times.head]

    def _microbatch(self, once: Deployment) -> tuple[Floats, Floats, Floats]:
        """Forward, backward and backward for weights of the embedding, each kind and the head."""
        kernels = [_kernels(kind, once, self.cluster) for kind in self.kinds]
        ends = kernels[self.places[-1]]
        embedding, head = ends.embedding_each_way, ends.head_each_pass
        back = embedding * (not self.model.frozen)
        layers = (_layer(*each) for each in zip(kernels, self.kinds, strict=True))
        every = [(embedding, back, back), *layers, (head, 2 * head, head)]
        forward, backward, late = (np.stack(column) for column in zip(*every, strict=True))
        return forward, backward, late

    def _exchanged(self, at: Deployment) -> Replicas:
        """What replicas exchange of the embedding, each kind and the head."""
        weights, cards = part_weights(self.model, self.kinds, at), self.cluster.card.cards_per_node
        every = [replicas(each, at, self.cluster.runs, cards) for each in weights]
        names = [field.name for field in fields(Replicas)]
        return Replicas(**{name: np.stack([getattr(of, name) for of in every]) for name in names})

    def _shared(self, times: tuple[Floats, Floats, Floats], of: Replicas) -> list[Passes[float]]:
        """The passes of each part, beside what replicas exchange."""
        constants, hidden = self.cluster.constants, self.cluster.hidden
        if hidden is not None:
            exposed = dict.fromkeys(("exposed_gradient", "exposed_shard"), 1 - hidden)
            constants = {**constants, **exposed}
            of = replace(of, overlaps=np.asarray(1.0), prefetches=np.asarray(1.0))
        found, names = passes(*times, of, constants), [field.name for field in fields(Passes)]
        rows = zip(*(getattr(found, name).tolist() for name in names), strict=True)
        return [Passes(**dict(zip(names, row, strict=True))) for row in rows]


def part_weights(model: Transformer, kinds: Sequence[Transformer], at: Deployment) -> list[Weights]:
    """The weights of the embedding, of a layer of each kind and of the head, on a device."""
    head = head_weights(model, at, is_copied=at.pipeline > 1)
    return [embedding_weights(model, at), *(layer_weights(kind, at) for kind in kinds), head]


def cluster_times(model: Transformer, at: Deployment, cluster: Cluster) -> ClusterTimes:
    """The times of a deployment on a cluster."""
    return JobTimes(model, cluster).of(at)


def _kernels(kind: Transformer, once: Deployment, cluster: Cluster) -> KernelTimes:
    done = work(kind, once.seen_by(kind), cluster.runs, cluster.card.cards_per_node)
    return kernel_times(done, cluster.constants)


def _layer(times: KernelTimes, kind: Transformer) -> tuple[Floats, Floats, Floats]:
    """Forward, backward and what of it is for weights; frozen layers have less of it."""
    if not kind.frozen:
        return times.forward, times.backward, times.weight_backward
    passed = times.backward - times.weight_backward
    return times.forward, 0 * passed if kind.frozen == "all" else passed, 0 * passed


def sent_bytes(model: Transformer, at: Deployment, cluster: Cluster) -> Number:
    """What a card sends to the next stage for a microbatch, bytes."""
    scattered = is_scattered(at, cluster.runs, cluster.card.cards_per_node)
    return message_bytes(model, at, is_scattered=scattered)
