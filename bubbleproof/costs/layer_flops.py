"""FLOPs of a whole layer and of the head, for one microbatch on one device."""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.flops import Flops, operation_flops
from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import words


def layer_flops(model: Transformer, at: Deployment) -> Flops:
    """FLOPs of one layer."""
    return sum((operation_flops(o, model, at) for o in layer_operations(model)), Flops())


def head_flops(model: Transformer, at: Deployment) -> Flops:
    """FLOPs of the product with the vocabulary; nothing of it is recomputed."""
    tokens = Fraction(at.micro_batch * at.sequence, at.context)
    product = 2 * tokens * model.hidden * words(model, at)
    return Flops() + Flops(forward=product, input_backward=product, weight_backward=product)
