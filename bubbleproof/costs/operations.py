"""The operations of a layer: their weights, FLOPs, and what of their outputs is kept.

Symbols: T = b s tokens of a microbatch, h hidden, a query heads, w width of a head, f width of the
feed-forward block, k blocks that a token goes through. A linear from m to n numbers costs 2 T m n
FLOPs forward, and as much for each of the gradients of its input (I) and of its weights (W). The
attention's two products cost 2 T s a w each, whole squares as the papers count; backward twice
that, and a fused kernel computes the scores once more (5/2); no weights.

Each operation's *output* is kept for the backward (PipeMesh Tables I and II); in a layer as a whole
that is what keeping each operation's input comes to (Korthikanti et al., §4). Norms keep their
output, the linear before a residual addition the sum, a parallel layer only one sum. ``per_token``
are numbers; ``split`` tells how tensor parallelism divides them: "tensor" as the heads or columns,
"input" and "sequence" along the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from bubbleproof.costs.transformer import Transformer

Split = Literal["tensor", "input", "sequence", "none"]
Number = int | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a layer, per token; whole, not divided over devices.

    ``weights`` is (m, n) of a linear with ``copies`` of it, of which a token passes ``passes``;
    ``vectors`` the weights that are no matrix (biases, norms), with ``split_vectors`` of them
    divided over the tensor-parallel devices. ``kept`` numbers of the output stay for the backward,
    ``masks`` bytes of dropout, ``statistics`` numbers of 32 bits. ``pointwise`` FLOPs forward are
    no matrix product (PipeMesh Table II). ``scores`` marks the attention itself.
    """

    name: str
    block: Literal["attention", "feed-forward"]
    weights: tuple[Number, Number] | None = None
    split_weights: bool = True
    copies: int = 1
    passes: int = 1
    vectors: Number = 0
    split_vectors: bool = False
    kept: Number = 0
    split: Split = "tensor"
    masks: Number = 0
    statistics: int = 0
    pointwise: Number = field(default=0)
    scores: bool = False

    @property
    def parameters(self) -> Number:
        """All weights, every copy."""
        inner, outer = self.weights or (0, 0)
        return self.copies * (inner * outer + self.vectors)


@lru_cache(maxsize=256)
def layer_operations(model: Transformer) -> tuple[Operation, ...]:
    """The operations of one layer in order."""
    norms = _norms(model)
    return (norms[0], *_attention(model), *norms[1:], *_feed_forward(model))


def norm_weights(model: Transformer) -> int:
    """Weights of one norm: a scale, and for a layer norm a shift."""
    return model.hidden * (2 if model.norm == "layer" else 1)


def norm_statistics(model: Transformer) -> int:
    """Numbers that one norm keeps of a token."""
    return 2 if model.norm == "layer" else 1


def _norms(model: Transformer) -> tuple[Operation, ...]:
    return tuple(
        Operation(
            name=f"norm {number + 1}" if model.norms > 1 else "norm",
            block="attention" if number == 0 else "feed-forward",
            vectors=norm_weights(model),
            kept=model.hidden,
            split="input",
            statistics=norm_statistics(model),
        )
        for number in range(model.norms)
    )


def _attention(model: Transformer) -> tuple[Operation, ...]:
    h, q, kv = model.hidden, model.query_width, model.kv_width
    has_bias = model.attention_biases != "none"
    widths = (("query", q), ("key", kv), ("value", kv))
    inputs = tuple(
        Operation(
            name=name,
            block="attention",
            weights=(h, width),
            vectors=width if has_bias else 0,
            split_vectors=True,
            kept=width,
        )
        for name, width in widths
    )
    scores = Operation(name="attention", block="attention", kept=q, scores=True)
    output = Operation(
        name="output",
        block="attention",
        weights=(q, h),
        vectors=h if model.attention_biases == "all" else 0,
        kept=0 if model.parallel else h,
        split="sequence",
        masks=h if model.dropout and not model.parallel else 0,
    )
    return (*inputs, scores, output)


def _feed_forward(model: Transformer) -> tuple[Operation, ...]:
    h, f, k = model.hidden, model.feed_forward, model.active
    copies = model.experts or 1

    def linear(name: str, inner: Number, outer: Number) -> Operation:
        is_down = name == "down"
        kept = k * outer if not is_down else (k * h if model.experts else 0) + h
        return Operation(
            name=name,
            block="feed-forward",
            weights=(inner, outer),
            copies=copies,
            passes=k,
            vectors=outer if model.feed_forward_bias else 0,
            split_vectors=not is_down,
            kept=kept,
            split="sequence" if is_down else "tensor",
            masks=h if is_down and model.dropout else 0,
        )

    activation = (
        (
            Operation(name="silu", block="feed-forward", kept=k * f, pointwise=5 * k * f),
            Operation(name="product", block="feed-forward", kept=k * f, pointwise=k * f),
        )
        if model.gated
        else (Operation(name="gelu", block="feed-forward", kept=k * f, pointwise=14 * k * f),)
    )
    gate = (linear("gate", h, f),) if model.gated else ()
    return (*_router(model), linear("up", h, f), *gate, *activation, linear("down", f, h))


def _router(model: Transformer) -> tuple[Operation, ...]:
    """The linear that picks experts, and the tokens' copies for those that they go to."""
    if not model.experts:
        return ()
    return (
        Operation(
            name="router",
            block="feed-forward",
            weights=(model.hidden, model.experts),
            split_weights=False,
            kept=model.experts_per_token * model.hidden,
            split="input",
            statistics=model.experts,
        ),
    )
