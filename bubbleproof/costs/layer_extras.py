"""Operations that some layers have more: the ``extras`` of a model (``costs.transformer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bubbleproof.costs.layer_operation import LayerOperation

QueryNorm = Literal["none", "plain", "head", "whole"]


def layer_extras(
    shape: Mapping[str, int],
    *,
    qk_norm: QueryNorm = "none",
    sinks: bool = False,
    output_gate: bool = False,
    shared_gate: bool = False,
    router_bias: bool = False,
) -> tuple[LayerOperation, ...]:
    """The operations of these features, of a layer of this shape.

    Parameters
    ----------
    shape
        ``hidden``, ``heads``, ``kv_heads``, ``width`` of a head and ``experts``.
    qk_norm
        Norms of queries and keys: of each "head", with weights that all heads share, of the
        "whole", or "plain", of each head without weights.
    sinks
        A number a head, beside its scores.
    output_gate
        What the attention puts out is multiplied by a gate of as many numbers.
    shared_gate
        What the shared block puts out is multiplied by one number.
    router_bias
        A number an expert, added to its rate.
    """
    hidden, width = shape["hidden"], shape["width"]
    found: list[LayerOperation] = []
    if qk_norm != "none":
        whole = qk_norm == "whole"
        for name, heads in (("query norm", shape["heads"]), ("key norm", shape["kv_heads"])):
            weights = {"plain": 0, "head": width, "whole": heads * width}[qk_norm]
            found.append(
                LayerOperation(
                    name=name,
                    block="attention",
                    vectors=weights,
                    split_vectors=whole,
                    kept=heads * width,
                    statistics=1 if whole else heads,
                )
            )
    if sinks:
        found.append(_vectors("sinks", shape["heads"], is_split=True))
    if output_gate:
        gates = shape["heads"] * width
        gate = {"weights": (hidden, gates), "kept": gates}
        found.append(LayerOperation(name="output gate", block="attention", **gate))  # type: ignore[arg-type]  # of their types
        found.append(LayerOperation(name="gated output", block="attention", kept=gates))
    if shared_gate:
        found.append(
            LayerOperation(
                name="shared rate",
                block="feed-forward",
                weights=(hidden, 1),
                split_weights=False,
                kept=1,
                split="sequence",
            )
        )
    if router_bias:
        found.append(_vectors("router bias", shape["experts"], is_split=False))
    return tuple(found)


def _vectors(name: str, number: int, *, is_split: bool) -> LayerOperation:
    block: Literal["attention", "feed-forward"] = "attention" if is_split else "feed-forward"
    return LayerOperation(name=name, block=block, vectors=number, split_vectors=is_split)
