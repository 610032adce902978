"""Operations that some layers have more: the ``extras`` of a model (``costs.transformer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bubbleproof.costs.layer_operation import LayerOperation

QueryNorm = Literal["none", "plain", "head", "each", "whole"]


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
        ``hidden``, ``heads``, ``kv_heads``, ``width`` of a head, ``experts``, ``statistics`` of a
        norm.
    qk_norm
        Norms of queries and keys: of each "head", with weights that all heads share, of
        "each" with its own, of the "whole", or "plain", of each head without weights.
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
        whole, own = qk_norm == "whole", qk_norm in ("each", "whole")
        for name, heads in (("query norm", shape["heads"]), ("key norm", shape["kv_heads"])):
            weights = heads * width if own else width * (qk_norm == "head")
            found.append(
                LayerOperation(
                    name=name,
                    block="attention",
                    vectors=weights,
                    split_vectors=own,
                    kept=heads * width,
                    statistics=shape.get("statistics", 1) * (1 if whole else heads),
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
                kept=1 + hidden,  # and what is multiplied
                split="sequence",
            )
        )
    if router_bias:
        found.append(_vectors("router bias", shape["experts"], is_split=False))
    return tuple(found)


def _vectors(name: str, number: int, *, is_split: bool) -> LayerOperation:
    block: Literal["attention", "feed-forward"] = "attention" if is_split else "feed-forward"
    return LayerOperation(name=name, block=block, vectors=number, split_vectors=is_split)
