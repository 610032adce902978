"""MFU, model FLOPs utilisation: what of the cards' rate a step does.

The FLOPs of the model's products in a step, nothing recomputed counted, over what the cards' dense
rate would do in that time: that of their products.
"""

from __future__ import annotations

from bubbleproof.costs.combinations import TrainingJob
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.model_costs import head_flops, layer_flops


def utilisation(training: TrainingJob, iteration: int) -> float:
    """The part of the cards' dense rate that a step does.

    Parameters
    ----------
    iteration
        What the step takes, in microseconds.
    """
    cluster = training.cluster
    rate = cluster.card.tflops["fp8"] if cluster.runs.is_eighth else cluster.card.half_tflops
    return teraflops(training, iteration) / rate


def teraflops(training: TrainingJob, iteration: int) -> float:
    """Model FLOPs of a step per card and second, nothing recomputed counted, in 10^12.

    Parameters
    ----------
    iteration
        What the step takes, in microseconds.
    """
    model, plain = training.model, Deployment(sequence=training.deployment.sequence)
    layers = (layer_flops(kind, plain) * count for kind, count in model.layer_runs)
    one = sum(layers, head_flops(model, plain))
    step = float(one.forward + one.input_backward + one.weight_backward)
    return step * training.samples / training.cluster.cards / iteration / 1e6
