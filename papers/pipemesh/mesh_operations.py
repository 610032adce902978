"""What PipeMesh's planner needs of a model on a cluster: ``[paper.pipemesh]`` from ``costs``.

Of a rank that is one tensor-parallel group, on one of its cards: psi, the parameters of its layers;
D, the cards that share them; the ticks to gather or to reduce all of them, the mean of the two as
the model of times has them, on the rank where that takes longest; and what may be recomputed: norms
and dropout masks, queries, keys and values, and the feed-forward block but for its last product. A
linear takes its share of the forward's FLOPs, what is no product the time to read and write its
output at the card's memory bandwidth (Korthikanti et al., 2023, section 5, has as much).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.model_costs import layer_flops
from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.saved_bytes import operation_saved
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import layer_weights

AGAIN = ("norm", "query", "key", "value", "up", "gate", "silu", "product", "gelu")
GIGA = 10**9


def mesh_table(training: TrainingJob, one: CombinationCosts) -> dict[str, object]:
    """The table of a deployment under ZeRO-1; empty where no other card has its weights.

    It is empty as well where the deployment has no numbers, since it fits on no card.
    """
    model, at = training.model, training.deployment.with_changes(**one.combination.to_json())
    if at.replicas == 1 or one.numbers is None:
        return {}
    layers = model.layers // at.pipeline
    found: dict[str, object] = {
        "parameters": layers * int(layer_weights(model, at).total),
        "replicas": at.replicas,
        "communication": ceil(Fraction(one.numbers.exchange, 2)),
    }
    if at.scope == "none":
        bandwidth = int(training.cluster.card.memory_gbs * GIGA)
        forward = one.numbers.layers.runs[0][0].forward
        found["operations"] = [
            {"name": name, "activation": saved, "ticks": ticks, "count": layers}
            for name, saved, ticks in layer_again(model, at, forward, bandwidth)
        ]
    return found


def layer_again(
    model: Transformer, at: Deployment, forward: int, bandwidth: int
) -> list[tuple[str, int, int]]:
    """(name, bytes, ticks) of what may be recomputed of a layer whose forward has so many ticks.

    ``bandwidth`` of a card's memory in bytes per second; a tick is a microsecond.
    """
    whole = Fraction(layer_flops(model, at).forward)
    found = []
    for one in layer_operations(model):
        if not one.name.startswith(AGAIN):
            continue
        flops = Fraction(operation_flops(one, model, at).forward)
        saved = operation_saved(one, model, at)
        moved = 2 * saved * 10**6 / bandwidth
        ticks = forward * flops / whole if flops else moved
        found.append((one.name, int(saved), ceil(ticks)))
    return [*found, *_dropout(model, at, bandwidth)]


def _dropout(model: Transformer, at: Deployment, bandwidth: int) -> list[tuple[str, int, int]]:
    """The masks of a layer's dropouts, kept or drawn again."""
    masks = sum(one.masks for one in layer_operations(model))
    if not masks:
        return []
    saved = Fraction(masks * at.sequence * at.micro_batch, at.tensor * at.context)
    return [("dropout", int(saved), ceil(2 * saved * 10**6 / bandwidth))]
