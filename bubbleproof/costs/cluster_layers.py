"""A model on a cluster as the layers of a pipeline: ticks (microseconds) and bytes.

What the planner and a problem file need: each run of layers alike, the embedding and the head with
their ticks, activation and state; the latency of a message; the memory that is left to them on a
card; and what follows the pipeline at the end of a step. A layer that is recomputed keeps what its
scope leaves.
What ``costs.times.allocated`` counts beside state and saved bytes is counted here too: the head
holds what the loss needs for a moment, its logits among it, as long as a microbatch is there, which
in 1F1B is that moment; each card has room for the software's bytes, for what a block's backward
needs, for one layer in full while it is made again, and under ZeRO 3 for the gathered weights of
two, or of one and an end. Those come off the card's memory, as does the reserve.

Where samples are cut into slices, what is divided among them (ticks of passes, activations,
messages) is a multiple of their numbers, the ticks nearest, the bytes above: a slice's share is
whole, whatever layers a stage has. Estimates are not as fine as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import cluster_times, sent_bytes
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.saved_bytes import embedding_saved, head_saved, layer_saved
from bubbleproof.costs.state import state_bytes
from bubbleproof.costs.times.allocated import StageBytes, allocated, gathered_weights
from bubbleproof.costs.times.replicas import Passes
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    Weights,
    embedding_weights,
    head_weights,
    layer_weights,
    words,
)
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


def cluster_layers(
    model: Transformer,
    at: Deployment,
    cluster: Cluster,
    rule: CutRule,
    shares: int = 1,
    microbatches: int = 1,
) -> ClusterLayers:
    """The numbers of a deployment, its layers cut in one of these ways, and samples in ``shares``.

    Parameters
    ----------
    rule
        Which cuts of the layers are tried.
    shares
        Every number is rounded to a multiple of it, so that it divides into so many whole parts.
    microbatches
        Those of a step, which a balanced cut goes by.

    Raises
    ------
    ValueError
        Where the model cannot be cut so.
    """
    at.with_changes(pipeline=1).require(model)
    cluster.require(at)
    times, once = cluster_times(model, at, cluster), at.of_microbatch
    is_alone, part = at.pipeline == 1, partial(_part, at=at, shares=shares)
    runs = model.layer_runs
    each = {kind: layer for (kind, _), (layer, _) in zip(runs, times.layers, strict=True)}
    parts = {
        kind: part(layer, layer_saved(kind, once), layer_weights(kind, at))
        for kind, layer in each.items()
    }
    layers = Layers(
        runs=tuple((parts[kind], number) for kind, number in runs),
        embedding=part(times.embedding, embedding_saved(model, at), embedding_weights(model, at)),
        head=part(
            times.head,
            _head_bytes(model, once, cluster.runs),
            head_weights(model, at, is_copied=not is_alone),
        ),
        rule=rule,
    )
    beside = cluster.reserve + _workspace(model, at, cluster)
    cuts = _cuts(layers, at.pipeline, microbatches, cluster.memory - beside)
    return ClusterLayers(
        layers=layers,
        latency=ceil(times.message * TICKS),
        message=_bytes(sent_bytes(model, at, cluster), shares),
        capacity=cluster.memory - beside,
        beside=beside,
        step_end=ceil(times.step_end(cuts) * TICKS),
        rest_end=ceil(times.rest_end(cuts) * TICKS),
        exchange=ceil(times.exchange(cuts[:1]) * TICKS),
        cuts=cuts,
    )


def _cuts(layers: Layers, stages: int, microbatches: int, room: int) -> tuple[Cut, ...]:
    """Those of the layers' rule. Raises ``ValueError`` where there is none."""
    found = layers.rule.cuts(layers, range(stages), microbatches, room)
    if not found:
        must = "be at most" if layers.rule.is_uneven else "divide"
        raise ValueError(f"pipeline must {must} layers {layers.number}, got {stages}")
    return found


def _part(
    times: Passes[float], saved: Number, weights: Weights, at: Deployment, shares: int
) -> LayerPart:
    passes = times.forward, times.input_backward, times.weight_backward
    forward, back, late = (_ticks(each, shares) for each in passes)
    return LayerPart(
        forward=forward,
        backward=back + late,
        input_backward=back,
        weight_backward=late,
        activation=_bytes(saved, shares),
        static=state_bytes(weights, at),
    )


def _ticks(milliseconds: float, shares: int) -> int:
    return round(milliseconds * TICKS / shares) * shares


def _bytes(number: Number, shares: int) -> int:
    return ceil(Fraction(number) / shares) * shares


def _head_bytes(model: Transformer, once: Deployment, runs: Software) -> Number:
    """What the head holds of a microbatch: of the loss's moment what no block needs anyway."""
    tokens = Fraction(once.micro_batch * once.sequence, once.context)
    kept = head_saved(model, once) - LOGIT * tokens * words(model, once)
    first, last = _ends(model, once, runs)
    return max(Fraction(kept), Fraction(last.moment - first.moment))


def _workspace(model: Transformer, at: Deployment, cluster: Cluster) -> int:
    """Bytes that a card needs now and then beside state and kept activations."""
    once = at.of_microbatch
    first, _ = _ends(model, once, cluster.runs)
    found = first.software + first.moment
    if at.scope != "none":
        found += max(
            ceil(layer_saved(kind, once, "none") - layer_saved(kind, once))
            for kind in dict(model.layer_runs)
        )
    return found + ceil(gathered_weights(model, at))


@lru_cache(maxsize=1024)
def _ends(model: Transformer, once: Deployment, runs: Software) -> tuple[StageBytes, ...]:
    """A stage of all layers without the head, and one of the head alone."""
    return allocated(model, once.with_changes(pipeline=2), runs, 1, cut=(model.layers, 0))
