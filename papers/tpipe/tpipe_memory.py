"""What section 6.2's LLAMA holds on one GPU: gigabytes and depths of T-Pipe's Figure 8.

The figure itself is not in the text; section 6.2 tells its numbers. Layers are those of Llama 2 70B
on (PP, TP) = (8, 8), 64 microbatches of 2 samples of 4096 tokens. A layer keeps all that its
operations put out, inputs of column-split linears whole (the figure's caption), but for SiLU and
the gated product (a GPT's GeLU), which operator-level recomputation makes again (section 6.1); a
parameter weighs 18 bytes, of which T-Offload takes half of the optimizer's 12. Peaks are those of
built schedules, in chunks of half a rank's layers. "GB" of the paper are GiB: only so do its
gigabytes come out.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.saved_bytes import layer_saved, operation_saved
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import layer_weights
from bubbleproof.papers.tpipe import tpipe_schedules as on

RANKS, MICROBATCHES, GIB = 8, 64, 1 << 30
AT = {"p": RANKS, "m": MICROBATCHES}
DEPLOYMENT = Deployment(tensor=8, pipeline=RANKS, sequence=4096, micro_batch=2, accounting="tpipe")
CAPACITY = 30 * GIB  # of 32 (section 6.1); 2 for what nothing here counts
AGAIN = ("gelu", "silu", "product")
AWAY = Fraction(1, 3)  # of the layers' state: half of the optimizer's 12 bytes of 18
# What runs, how many chunks a rank has, whether a third of the layers' state is away.
SYSTEMS: dict[str, tuple[str, int, bool]] = {
    "1F1B": ("1F1B", 1, False),
    "1F1B+R=50%": ("1F1B+R=50%", 1, False),
    "T-Pipe": ("T-Pipe", 2, False),
    "T-Recomp": ("T-Recomp", 2, False),
    "TPipe ALL": ("T-Recomp", 2, True),
}


def model_of(layers: int) -> Transformer:
    """A Llama 2 70B of another depth."""
    return replace(known_model("llama-2-70b").model, layers=layers)


def layer_bytes(model: Transformer, at: Deployment = DEPLOYMENT) -> int:
    """Bytes of one layer and microbatch on one GPU."""
    again = (one for one in layer_operations(model) if one.name in AGAIN)
    dropped = sum((operation_saved(one, model, at) for one in again), Fraction(0))
    return int(layer_saved(model, at, "none") - dropped)


def layer_state(model: Transformer, at: Deployment = DEPLOYMENT) -> int:
    """Bytes of state of one layer on one GPU."""
    return int(layer_weights(model, at).total) * at.bytes_of.total


def rank_state(model: Transformer, at: Deployment = DEPLOYMENT) -> int:
    """Bytes of state of the rank that has most of it, an embedding or a head included."""
    each = model.layers // RANKS
    ends = (
        stage_weights(model, at, layers=each, is_first=first, is_last=not first)
        for first in (True, False)
    )
    return max(state_bytes(one, at) for one in ends)


def chunks_held() -> dict[str, int]:
    """Halves of a rank's layers that are held at the peak, by what runs."""
    return {
        "1F1B": 2 * on.peak(on.PLAIN, AT),
        "1F1B+R=50%": on.half_recomputed_peak(AT),
        "T-Pipe": on.peak(on.TPIPE, AT),
        "T-Recomp": on.peak(on.TRECOMP, AT),
    }


def activation_bytes(system: str, layers: int) -> Fraction:
    """On the fullest GPU; 1F1B with half recomputed makes one layer at a time again."""
    runs, _, _ = SYSTEMS[system]
    halves = Fraction(chunks_held()[runs] * layers, 2 * RANKS)
    return (halves + (runs == "1F1B+R=50%")) * layer_bytes(model_of(layers))


def activation_gib(system: str, layers: int) -> Fraction:
    """The same in GiB."""
    return activation_bytes(system, layers) / GIB


def memory_share(layers: int) -> Fraction:
    """TPipe ALL's activations and layers' state, per cent of 1F1B's with half recomputed."""
    state = Fraction(layers * layer_state(model_of(layers)), RANKS)
    least = activation_bytes("TPipe ALL", layers) + state * (1 - AWAY)
    return 100 * least / (activation_bytes("1F1B+R=50%", layers) + state)


@lru_cache
def bytes_of(system: str, layers: int) -> int:
    """Activations and state of the fullest rank."""
    model = model_of(layers)
    _, _, is_away = SYSTEMS[system]
    away = layers // RANKS * layer_state(model) * AWAY if is_away else 0
    return int(activation_bytes(system, layers) + rank_state(model) - away)


def most_layers(system: str, capacity: int = CAPACITY) -> int:
    """The deepest model that fits, in steps that give each chunk whole layers."""
    _, chunks, _ = SYSTEMS[system]
    step = RANKS * chunks
    layers = step
    while bytes_of(system, layers + step) <= capacity:
        layers += step
    return layers
