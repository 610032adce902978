"""Operations that take the attention's place: state-space layers and linear attention.

Each is the ``mixer`` of a kind of layer (``costs.transformer``). Linears and the depthwise
convolution, c channels of k weights, cost as linears do. The scan over the sequence has products
without weights, of a token:

- Mamba (Gu and Dao, 2023): a state of n numbers for each of d channels is read, 2 d n;
- Mamba-2 (Dao and Gu, 2024): the same, and written by an outer product, 4 d n;
- gated delta net (Yang et al., 2024): each head's state of k x v numbers is read by the key,
  corrected by an outer product, and read by the query, 6 k v.

Each operation's output is kept for the backward, as in any layer; the state itself is computed
again, chunk by chunk. Fused kernels (mamba-ssm, causal-conv1d, fla) keep no convolution before its
activation, Mamba-2's none behind it either; the gated delta rule's keeps the factors of its chunks
of 64 tokens.
"""

from __future__ import annotations

from functools import partial

from bubbleproof.costs.layer_operation import LayerOperation, Number, Split

CHUNK = 64  # tokens
_makes = partial(LayerOperation, block="attention")


def mamba(
    hidden: int,
    *,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    kernel_bias: bool = True,
    bias: bool = False,
    norms: bool = False,
) -> tuple[LayerOperation, ...]:
    """Mamba: step sizes of ``rank`` numbers; ``norms`` over those, B and C (Jamba).

    Parameters
    ----------
    hidden, inner
        Numbers of a token outside the block and in it.
    state
        Numbers kept of each inner one.
    kernel
        Tokens that the convolution sees.
    rank
        Numbers that step sizes are made from.
    kernel_bias, bias
        Whether the convolution, and the linears in and out, have biases.
    norms
        Whether step sizes, B and C are normed.
    """
    normed = _makes(
        name="state norms", vectors=rank + 2 * state, kept=rank + 2 * state, statistics=3
    )
    return (
        _linear("state in", hidden, 2 * inner, bias=bias),
        _linear("convolution", kernel, inner, bias=kernel_bias, fused=True),
        _makes(name="convolved", kept=inner),
        _linear("state sizes", inner, rank + 2 * state),
        *([normed] if norms else []),
        _linear("step", rank, inner, bias=True),
        _makes(
            name="scan",
            kept=inner,
            products=2 * inner * state,
            vectors=inner * (state + 1),
            split_vectors=True,
        ),
        _makes(name="gated output", kept=inner),
        _linear("output", inner, hidden, bias=bias, kept=hidden, along="sequence"),
    )


def mamba_2(
    hidden: int,
    *,
    inner: int,
    state: int,
    kernel: int,
    heads: int,
    groups: int,
    kernel_bias: bool = True,
    bias: bool = False,
    norm: bool = True,
) -> tuple[LayerOperation, ...]:
    """Mamba-2: ``heads`` with one step size each, B and C shared by ``groups`` of them.

    Parameters
    ----------
    hidden, inner
        Numbers of a token outside the block and in it.
    state
        Numbers kept of each inner one.
    kernel
        Tokens that the convolution sees.
    heads, groups
        Those of step sizes; those that share B and C.
    kernel_bias, bias
        Whether the convolution, and the linears in and out, have biases.
    norm
        Whether the gated output is normed.
    """
    channels = inner + 2 * groups * state
    return (
        _linear("state in", hidden, inner + channels + heads, bias=bias),
        _linear("convolution", kernel, channels, bias=kernel_bias, fused=True),
        _makes(name="convolved", kept=channels, fused=True),
        _makes(
            name="scan",
            kept=inner,
            products=4 * inner * state,
            vectors=3 * heads,
            split_vectors=True,
        ),
        _makes(
            name="gated output",
            kept=inner,
            vectors=inner if norm else 0,
            split_vectors=True,
            statistics=groups if norm else 0,
        ),
        _linear("output", inner, hidden, bias=bias, kept=hidden, along="sequence"),
    )


def delta_net(
    hidden: int, *, key_heads: int, key_width: int, value_heads: int, value_width: int, kernel: int
) -> tuple[LayerOperation, ...]:
    """Gated delta net: a gate and a rate for each head of values, and a gated norm.

    Parameters
    ----------
    hidden
        Numbers of a token outside the block.
    key_heads, value_heads
        Heads of keys, as many of queries; heads of values.
    key_width, value_width
        Numbers of a head.
    kernel
        Tokens that the convolution sees.
    """
    keys, values = key_heads * key_width, value_heads * value_width
    channels = 2 * keys + values
    return (
        _linear("state in", hidden, channels + values),
        _linear("rates", hidden, 2 * value_heads),
        _linear("convolution", kernel, channels, fused=True),
        _makes(name="convolved", kept=channels),
        _makes(
            name="scan",
            kept=values + CHUNK * value_heads,
            statistics=2 * key_heads + value_heads,
            products=6 * value_heads * key_width * value_width,
            vectors=2 * value_heads,
            split_vectors=True,
        ),
        _makes(name="gated output", kept=values, vectors=value_width, statistics=value_heads),
        _linear("output", values, hidden, kept=hidden, along="sequence"),
    )


def _linear(
    name: str,
    inner: Number,
    outer: Number,
    *,
    bias: bool = False,
    kept: Number | None = None,
    along: Split = "tensor",
    fused: bool = False,
) -> LayerOperation:
    return _makes(
        name=name,
        weights=(inner, outer),
        vectors=outer if bias else 0,
        split_vectors=along == "tensor",
        kept=outer if kept is None else kept,
        split=along,
        fused=fused,
    )
