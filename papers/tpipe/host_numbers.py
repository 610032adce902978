"""What T-Recomp and T-Offload need of a model on a cluster: its numbers from ``costs``.

T-Recomp keeps of the shallow chunk what it is sent, the input of one layer (section 4.2), and makes
the rest again in the ticks of its forward. T-Offload moves the optimizer state of a rank's layers,
a card's share of it under ZeRO 1 and more (Appendix D: replicas share the updates). Its host is the
paper's own: 32 GB/s each way to a card (section 6.1), and the updates that Figure 15(a) leaves to
the step: on 8 ranks 94.55 % of off-load and step lie within Equation 5's window of 4 backwards,
1,283,653,632 parameters of a card in 1,091,883 us
(``examples/researcher/plans/tpipe-llama-84b.toml``). The gradients go down as they are kept, the
weights come back quantized to a byte each (section 5).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.weights import layer_weights
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute

LINK = 32_000  # bytes of a microsecond between a card and its host, each way
UPDATED = Fraction(1_283_653_632, 1_091_883)  # parameters of a microsecond, of one card
HOST = "T-Offload counts section 6.1's 32 GB/s to the host and Figure 15(a)'s rate of updates"


def shallow_recompute(training: TrainingJob, one: CombinationCosts) -> AllowedChoices | None:
    """What may be recomputed of a deployment; nothing where every layer already is."""
    at = training.deployment.with_changes(**one.combination.to_json())
    if at.scope == "full":
        return None
    kept = 2 * ceil(message_bytes(training.model, at))  # of a rank: each of two chunks has its half
    stages = tuple(range(at.pipeline))
    return AllowedChoices(recompute=AllowedRecompute(stages=stages, kept=kept))


def host_table(training: TrainingJob, one: CombinationCosts) -> dict[str, object]:
    """The table ``[paper.tpipe]`` of a deployment; the ends' weights stay on the cards."""
    at = training.deployment.with_changes(**one.combination.to_json())
    weights, layers = layer_weights(training.model, at), training.model.layers // at.pipeline
    replicas = at.replicas if at.zero else 1
    experts = Fraction(at.replicas, at.expert) if at.zero else 1
    owned = layers * (Fraction(weights.dense) / replicas + Fraction(weights.experts) / experts)
    return {
        "state": 2 * int(at.bytes_of.optimizer * owned / 2),
        "offload": ceil(at.bytes_of.gradient * owned / LINK),
        "step": ceil(owned / UPDATED),
        "upload": ceil(owned / LINK),
    }
