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

from functools import lru_cache, partial

from bubbleproof.costs.layer_operation import LayerOperation, Number, Split
from bubbleproof.costs.transformer import Transformer

__all__ = ["LayerOperation", "Number", "Split", "layer_operations"]
_attends = partial(LayerOperation, block="attention")
_feeds = partial(LayerOperation, block="feed-forward")


@lru_cache(maxsize=256)
def layer_operations(model: Transformer) -> tuple[LayerOperation, ...]:
    """The operations of one layer in order."""
    norms = _norms(model)
    mixer = _attention(model) if model.mixer is None else model.mixer
    block = _feed_forward(model) if model.feed_forward else ()
    return (*norms[:1], *mixer, *model.extras, *norms[1:], *block)


def norm_weights(model: Transformer) -> int:
    """Weights of one norm: a scale, and for a layer norm a shift."""
    return model.hidden * {"layer": 2, "rms": 1, "scale": 1, "bare": 0}[model.norm]


def norm_statistics(model: Transformer) -> int:
    """Numbers that one norm keeps of a token."""
    return 1 if model.norm == "rms" else 2


def _norms(model: Transformer) -> tuple[LayerOperation, ...]:
    return tuple(
        LayerOperation(
            name=f"norm {number + 1}" if model.norms > 1 else "norm",
            block="attention" if number == 0 else "feed-forward",
            vectors=norm_weights(model),
            kept=model.hidden,
            split="input",
            statistics=norm_statistics(model),
        )
        for number in range(model.norms)
    )


def _attention(model: Transformer) -> tuple[LayerOperation, ...]:
    h = model.hidden
    scores = _attends(name="attention", kept=model.output_width, scores=True)
    output = _attends(
        name="output",
        weights=(model.output_width, h),
        vectors=h if model.attention_biases in ("output", "all") else 0,
        kept=0 if model.parallel else h,
        split="sequence",
        masks=h if model.dropout and not model.parallel else 0,
    )
    inputs = _latent_inputs(model) if model.kv_rank else _inputs(model)
    return (*inputs, scores, output)


def _inputs(model: Transformer) -> tuple[LayerOperation, ...]:
    has_bias = model.attention_biases in ("inputs", "all")
    widths = {"query": model.query_width, "key": model.kv_width, "value": model.value_width}
    return tuple(
        _attends(
            name=name,
            weights=(model.hidden, width),
            vectors=width if has_bias else 0,
            split_vectors=True,
            kept=width,
        )
        for name, width in widths.items()
    )


def _latent_inputs(model: Transformer) -> tuple[LayerOperation, ...]:
    """Down to few numbers, which each device of a tensor group has, a norm of them, and up."""
    made = {
        "query": (model.query_rank, 0, model.query_width),
        "key-value": (model.kv_rank, model.rope_width, model.kv_width + model.value_width),
    }
    found: list[LayerOperation] = []
    for name, (rank, more, width) in made.items():
        if rank:
            down = (model.hidden, rank + more)
            found += [
                _attends(
                    name=f"{name} down",
                    weights=down,
                    split_weights=False,
                    kept=rank + more,
                    split="sequence",
                ),
                _attends(
                    name=f"{name} norm", vectors=rank, kept=rank, split="sequence", statistics=1
                ),
            ]
        shared = model.heads * model.rope_width if more else 0  # not made by the linear
        up = (rank or model.hidden, width - shared)
        found.append(_attends(name=name, weights=up, kept=width))
    return tuple(found)


def _feed_forward(model: Transformer) -> tuple[LayerOperation, ...]:
    mixed = model.experts > 0
    masks = model.hidden if model.dropout else 0
    block = _block(model, model.feed_forward, "", masks=0 if mixed else masks)
    if not mixed:
        return block
    shared = _block(model, model.shared_feed_forward, "shared ", masks=0)
    sum_up = _feeds(name="unpermute", kept=model.hidden, split="sequence", masks=masks)
    shared = shared if model.shared_feed_forward else ()
    return (*_router(model), *block, _feeds(name="unsort"), *shared, sum_up)


def _block(
    model: Transformer, width: Number, prefix: str, *, masks: Number
) -> tuple[LayerOperation, ...]:
    """A feed-forward block: all experts, or the one that every token goes through. What a shared
    one puts out is added at once."""
    h, f = model.hidden, width
    k, copies = (1, 1) if prefix else (model.active, model.experts or 1)

    def linear(name: str, inner: Number, outer: Number, kept: Number) -> LayerOperation:
        is_down = name == "down"
        return _feeds(
            name=prefix + name,
            weights=(inner, outer),
            copies=copies,
            passes=k,
            vectors=outer if model.feed_forward_bias else 0,
            split_vectors=not is_down,
            kept=kept,
            split="sequence" if is_down else "tensor",
            masks=masks if is_down else 0,
        )

    def pointwise(name: str, flops: int) -> LayerOperation:
        return _feeds(name=prefix + name, kept=k * f, pointwise=flops * k * f)

    activation = (
        (pointwise("silu", 5), pointwise("product", 1)) if model.gated else (pointwise("gelu", 14),)
    )
    gate = (linear("gate", h, f, k * f),) if model.gated else ()
    down = linear("down", f, h, 0 if prefix else k * h)
    return (linear("up", h, f, 0 if model.relu else k * f), *gate, *activation, down)


def _router(model: Transformer) -> tuple[LayerOperation, ...]:
    """The linear that rates experts, the choice of some, and the tokens' copies for those: in the
    order of experts before they are exchanged, and sorted by expert after it."""
    return (
        _feeds(
            name="router",
            weights=(model.hidden, model.experts),
            split_weights=False,
            split="input",
            statistics=model.experts,
        ),
        _feeds(name="choice"),
        _feeds(name="permute"),
        _feeds(name="sort", kept=model.experts_per_token * model.hidden, split="input"),
    )
