"""FLOPs of one microbatch on one device: forward, and the two parts of the backward.

A device computes its share of each linear for all tokens of its part of the sequence, and the
attention of its heads. FLOPs are those of matrix products, a multiplication and an addition each;
what is recomputed comes on top (``again``), by scope (``recompute_scopes``). Of frozen layers there
is no backward for the weights, nor any where nothing before them is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import LayerOperation, Number
from bubbleproof.costs.recompute_scopes import made_again
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import share, whole

FUSED_BACKWARD = Fraction(5, 2)  # five products where the forward has two
PLAIN_BACKWARD = 2
PASSES = ("forward", "input_backward", "weight_backward", "again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flops:
    """FLOPs of a forward, of the backward for the input, for the weights, and of a recomputation.

    A full backward is I + W, and ``again`` before it.
    """

    forward: Number = 0
    input_backward: Number = 0
    weight_backward: Number = 0
    again: Number = 0

    def __add__(self, other: Flops) -> Flops:
        return Flops(**{n: whole(getattr(self, n) + getattr(other, n)) for n in PASSES})

    def __mul__(self, times: int) -> Flops:
        return Flops(**{n: whole(getattr(self, n) * times) for n in PASSES})


def seen(model: Transformer, sequence: int) -> Number:
    """Tokens that one is compared with: of s the whole square as papers count, s.

    Of a window the band |i - j| < w of that square, s^2 - (s - w)(s - w + 1) pairs; of chunks the
    squares of c tokens and of the rest. Both over s.

    Parameters
    ----------
    sequence
        Tokens of a sequence.
    """
    s, window, chunk = sequence, model.window, model.chunk
    if 0 < window < s:
        return Fraction(s * s - (s - window) * (s - window + 1), s)
    return Fraction(s // chunk * chunk**2 + (s % chunk) ** 2, s) if 0 < chunk < s else s


def operation_flops(operation: LayerOperation, model: Transformer, at: Deployment) -> Flops:
    """FLOPs of one operation of a layer."""
    found = _trained(operation, model, at.seen_by(model))
    is_again = operation.name in made_again(model, at.scope) and model.frozen != "all"
    return Flops(
        forward=found.forward,
        input_backward=0 if model.frozen == "all" else found.input_backward,
        weight_backward=0 if model.frozen else found.weight_backward,
        again=found.forward if is_again else 0,
    )


def _trained(operation: LayerOperation, model: Transformer, at: Deployment) -> Flops:
    """Forward and backward where all is trained."""
    tokens = Fraction(at.micro_batch * at.sequence, at.context)
    if operation.scores or operation.products:
        widths = Fraction(model.query_width + model.output_width, at.tensor)
        forward = tokens * operation.products / at.tensor
        forward = 2 * tokens * seen(model, at.sequence) * widths if operation.scores else forward
        is_fused = operation.scores and at.rules.fused_attention
        back = (FUSED_BACKWARD if is_fused else PLAIN_BACKWARD) * forward
        return Flops() + Flops(forward=forward, input_backward=back)
    if operation.weights is None:
        return Flops()
    inner, outer = operation.weights
    part = Fraction(1, at.tensor) if operation.copies > 1 else share(operation, model, at)
    product = 2 * tokens * operation.passes * inner * outer * part
    return Flops() + Flops(forward=product, input_backward=product, weight_backward=product)
