"""One operation of a layer: its weights, and what of its output is kept (``operations``)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Split = Literal["tensor", "input", "sequence", "none"]
Number = int | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOperation:
    """One operation of a layer, per token; whole, not divided over devices.

    ``weights`` is (m, n) of a linear with ``copies`` of it, of which a token passes ``passes``;
    ``vectors`` the weights that are no matrix (biases, norms), with ``split_vectors`` of them
    divided over the tensor-parallel devices. ``kept`` numbers of the output stay for the backward,
    ``masks`` bytes of dropout, ``statistics`` numbers of 32 bits. ``pointwise`` FLOPs forward are
    no matrix product (PipeMesh Table II), ``products`` those of products without weights (a
    recurrent state's), twice as many backward. ``scores`` marks the attention itself. The
    weights of a ``shared`` one are another's: ``vectors`` alone count, as a copy in another stage.
    What a ``fused`` one makes is not kept where kernels are fused.
    """

    name: str
    block: Literal["attention", "feed-forward"]
    weights: tuple[Number, Number] | None = None
    split_weights: bool = True
    copies: int = 1
    passes: Number = 1
    vectors: Number = 0
    split_vectors: bool = False
    kept: Number = 0
    split: Split = "tensor"
    masks: Number = 0
    statistics: int = 0
    pointwise: Number = 0
    products: Number = 0
    scores: bool = False
    shared: bool = False
    fused: bool = False

    @property
    def parameters(self) -> Number:
        """All weights, every copy, where they are its own."""
        if self.shared:
            return 0
        inner, outer = self.weights or (0, 0)
        return self.copies * (inner * outer + self.vectors)
