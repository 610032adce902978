"""A model on a cluster as the layers of a pipeline: ticks (microseconds) and bytes.

What the planner and a problem file need: each run of layers alike, the embedding and the head with
their ticks, activation and state; the latency of a message; the memory that is left to them on a
card; and what follows the pipeline at the end of a step. A layer that is recomputed keeps what its
scope leaves.
What ``costs.moment_bytes`` counts beside state and saved bytes is counted here too: the head
holds what the loss needs for a moment, its logits among it, as long as a microbatch is there, which
in 1F1B is that moment; each card has room for the software's bytes, for what a block's backward
needs, for one layer in full while it is made again, and under ZeRO 3 for the gathered weights of
two, or of one and an end. Those come off the card's memory, as does the reserve.

Where samples are cut into slices, what is divided among them (ticks of passes, activations,
messages) is a multiple of their numbers, the ticks nearest, the bytes above: a slice's share is
whole, whatever layers a stage has. Estimates are not as fine as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import JobTimes, part_weights, sent_bytes
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.moment_bytes import gathered_weights, needed_beside
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import embedding_saved, head_saved, layer_saved
from bubbleproof.costs.state import state_bytes
from bubbleproof.costs.times.replicas import Passes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import words
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, CutRule, LayerPart, Layers

TICKS = 1000  # in a millisecond
LOGIT = 4  # bytes that ``head_saved`` counts of each


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayers:
    """``latency`` and ``step_end`` in ticks, ``message`` and ``capacity`` in bytes of one card,
    of which ``beside`` are not for state and activations.

    ``rest_end`` is ``step_end`` without replicas' collectives, ``exchange`` the ticks of those by
    themselves, of the first cut.
    ``cuts`` are those of the layers into one stage for each rank; the heaviest ends the step.
    """

    layers: Layers
    latency: int
    message: int
    capacity: int
    beside: int
    step_end: int
    rest_end: int
    exchange: int
    cuts: tuple[Cut, ...]


class JobLayers:
    """The numbers of a model's deployments on a cluster, its samples cut in ``shares``; what
    several of them have in common is kept."""

    def __init__(self, model: Transformer, cluster: Cluster, shares: int = 1) -> None:
        self.model, self.cluster, self.shares = model, cluster, shares
        self.times = JobTimes(model, cluster)
        self.microbatch, self.state = cache(self._microbatch), cache(self._state)

    def of(self, at: Deployment, rule: CutRule, microbatches: int = 1) -> ClusterLayers:
        """The numbers of one of them, each rounded to a multiple of the shares.

        Parameters
        ----------
        rule
            Which cuts of the layers are tried.
        microbatches
            Those of a step, which a balanced cut goes by.

        Raises
        ------
        ValueError
            Where the model cannot be cut so.
        """
        static, gathered = self.state(at.of_weights)
        self.cluster.require(at)
        times, (kept, moment) = self.times.of(at), self.microbatch(at.of_microbatch)
        every = zip(self.times.parts(times), kept, static, strict=True)
        embedding, *kinds, head = (self._part(*each) for each in every)
        runs = zip(self.times.places, self.times.runs, strict=True)
        layers = Layers(
            runs=tuple((kinds[place], number) for place, (_, number) in runs),
            embedding=embedding,
            head=head,
            rule=rule,
        )
        beside = self.cluster.reserve + moment + gathered
        cuts = _cuts(layers, at.pipeline, microbatches, self.cluster.memory - beside)
        return ClusterLayers(
            layers=layers,
            latency=ceil(times.message * TICKS),
            message=_bytes(sent_bytes(self.model, at, self.cluster), self.shares),
            capacity=self.cluster.memory - beside,
            beside=beside,
            step_end=ceil(times.step_end(cuts) * TICKS),
            rest_end=ceil(times.rest_end(cuts) * TICKS),
            exchange=ceil(times.exchange(cuts[:1]) * TICKS),
            cuts=cuts,
        )

    def _state(self, at: Deployment) -> tuple[Sequence[int], int]:
        """Bytes of state of each part, and of what is gathered for a while.

        Raises ``ValueError`` where the model cannot be cut so.
        """
        at.with_changes(pipeline=1).require(self.model)
        weights = part_weights(self.model, self.times.kinds, at)
        return [state_bytes(each, at) for each in weights], ceil(gathered_weights(self.model, at))

    def _microbatch(self, once: Deployment) -> tuple[Sequence[Number], int]:
        """Bytes that the embedding, a layer of each kind and the head keep of a microbatch, and
        those that a card needs now and then."""
        layers = [layer_saved(kind, once) for kind in self.times.kinds]
        if once.scope == "none":
            software, moment, more = self._beside(once)
            embedding, head = embedding_saved(self.model, once), _head_bytes(self.model, once, more)
            return [embedding, *layers, head], software + moment
        (embedding, *saved, head), moment = self.microbatch(once.with_changes(scope="none"))
        again = (ceil(all_of_it - kept) for all_of_it, kept in zip(saved, layers, strict=True))
        return [embedding, *layers, head], moment + max(again)  # one layer in full while it is made

    def _beside(self, once: Deployment) -> tuple[int, int, int]:
        """Bytes that layers need for their software and for a moment, the kind that needs most, and
        that the head needs more."""
        first, last = (
            needed_beside(self.model, kinds, once, self.cluster.runs, has_head=not kinds)
            for kinds in (self.model.layer_runs, ())
        )
        return *first, last[1] - first[1]

    def _part(self, times: Passes[float], saved: Number, static: int) -> LayerPart:
        passes = times.forward, times.input_backward, times.weight_backward
        forward, back, late = (round(each * TICKS / self.shares) * self.shares for each in passes)
        return LayerPart(
            forward=forward,
            backward=back + late,
            input_backward=back,
            weight_backward=late,
            activation=_bytes(saved, self.shares),
            static=static,
        )


def _cuts(layers: Layers, stages: int, microbatches: int, room: int) -> tuple[Cut, ...]:
    """Those of the layers' rule. Raises ``ValueError`` where there is none."""
    found = layers.rule.cuts(layers, range(stages), microbatches, room)
    if not found:
        must = "be at most" if layers.rule.is_uneven else "divide"
        raise ValueError(f"pipeline must {must} layers {layers.number}, got {stages}")
    return found


def _bytes(number: Number, shares: int) -> int:
    return ceil(Fraction(number) / shares) * shares


def _head_bytes(model: Transformer, once: Deployment, more: int) -> Number:
    """What the head holds of a microbatch: of the loss's moment what no block needs anyway.

    Parameters
    ----------
    more
        Bytes that the last stage needs for a moment more than the first.
    """
    tokens = Fraction(once.micro_batch * once.sequence, once.context)
    kept = head_saved(model, once) - LOGIT * tokens * words(model, once)
    return max(Fraction(kept), Fraction(more))
