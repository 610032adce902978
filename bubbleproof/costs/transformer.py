"""A decoder-only transformer as numbers: its shape.

A layer is attention and a feed-forward block, each behind a norm, on a residual stream of
``hidden`` numbers a token. ``heads`` query heads of ``head_width`` share ``kv_heads`` heads of keys
and values (as many as queries: multi-head; fewer: grouped-query; one: multi-query). A *gated* block
(SwiGLU, GeGLU) has three linears, up, gate and down, a plain one (GeLU) up and down. In a
*parallel* layer both blocks read the layer's input, and their outputs are added at once (Falcon).
With ``experts`` the feed-forward block is that many blocks and a router; a token goes through
``experts_per_token`` of them, and through one more of ``shared_feed_forward`` where there is one.
The first ``dense_layers`` layers of such a model have one block of ``dense_feed_forward`` instead.

*Latent* attention (DeepSeek-V2, section 2.1): keys and values are made from ``kv_rank`` numbers of
a token, queries from ``query_rank`` (0: from the stream); each head's key and query have
``rope_width`` numbers more than ``head_width``, those of the keys the same for all heads, and its
value ``value_head_width`` (else as many as ``head_width``).

Positions are learned (``positions`` rows) or cost no weights (0).

``feed_forward`` may be a fraction: PipeMesh's Table II has 8/3 h whatever h is. All is counted in
numbers, not bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from bubbleproof.theory.pipelines.value_types import AtLeast

Positive = Annotated[int, AtLeast(1)]
Norm = Literal["layer", "rms"]
Biases = Literal["none", "inputs", "all"]
MOST = {"layers": 10_000, "heads": 1 << 16, "kv_heads": 1 << 16, "experts": 1 << 16}
LARGEST = 1 << 32  # of any other number of a shape
_POSITIVE = ("layers", "hidden", "heads", "feed_forward", "vocabulary", "norms")
_LATENT = ("query_rank", "rope_width")  # only with kv_rank
_NATURAL = (
    "kv_heads",
    "head_width",
    "positions",
    "experts",
    "experts_per_token",
    "shared_feed_forward",
    "dense_layers",
    "dense_feed_forward",
    "kv_rank",
    "value_head_width",
    *_LATENT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The shape of a model.

    ``kv_heads`` and ``head_width`` default to ``heads`` and ``hidden / heads``.
    ``attention_biases`` are none, those of query, key and value ("inputs"), or the output's as well
    ("all").
    ``norms`` counts the norms of a layer; ``embedding_norm`` is one more after the embedding.
    ``tied``: the head reads the embedding's weights. ``dropout``: masks are kept for the backward.
    Raises ``ValueError`` for numbers that make no model.
    """

    layers: Positive
    hidden: Positive
    heads: Positive
    feed_forward: Annotated[int | Fraction, AtLeast(1)]
    vocabulary: Positive
    kv_heads: int = 0
    head_width: int = 0
    positions: int = 0
    gated: bool = False
    norm: Norm = "layer"
    norms: Positive = 2
    embedding_norm: bool = False
    parallel: bool = False
    attention_biases: Biases = "none"
    feed_forward_bias: bool = False
    head_bias: bool = False
    tied: bool = False
    experts: int = 0
    experts_per_token: int = 0
    shared_feed_forward: int = 0
    dense_layers: int = 0
    dense_feed_forward: int = 0
    kv_rank: int = 0
    query_rank: int = 0
    rope_width: int = 0
    value_head_width: int = 0
    dropout: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        for names, least in ((_POSITIVE, 1), (_NATURAL, 0)):
            for name in names:
                given, most = getattr(self, name), MOST.get(name, LARGEST)
                if given < least:
                    raise ValueError(f"model {name} must be {least} or more, got {given}")
                if given > most:
                    raise ValueError(f"model {name} must be at most {most}, got {given}")
        self._set_heads()
        self._require_latent()
        self._require_experts()

    def _set_heads(self) -> None:
        """The heads of keys and values, and the width of a head, where they are not told."""
        heads, hidden = self.heads, self.hidden
        if not self.head_width and hidden % heads:
            fit = _nearest_divisor(hidden, heads)
            raise ValueError(
                f"model hidden {hidden} must be a multiple of heads, got {heads}; "
                f"use heads = {fit}, or tell head_width"
            )
        object.__setattr__(self, "head_width", self.head_width or hidden // heads)
        object.__setattr__(self, "value_head_width", self.value_head_width or self.head_width)
        object.__setattr__(self, "kv_heads", self.kv_heads or heads)
        if heads % self.kv_heads:
            fit = _nearest_divisor(heads, self.kv_heads)
            raise ValueError(
                f"model kv_heads must divide heads {heads}, got {self.kv_heads}; use {fit}"
            )

    def _require_latent(self) -> None:
        told = next((name for name in _LATENT if getattr(self, name)), "")
        if told and not self.kv_rank:
            raise ValueError(f"model {told} needs kv_rank, which is 0")
        if self.kv_rank and self.kv_heads != self.heads:
            raise ValueError(
                f"model kv_heads must be heads {self.heads} with kv_rank, got {self.kv_heads}"
            )

    def _require_experts(self) -> None:
        if bool(self.experts) != bool(self.experts_per_token):
            raise ValueError("model experts and experts_per_token go together: tell both or none")
        if self.experts_per_token > self.experts:
            raise ValueError(
                f"model experts_per_token must be at most experts {self.experts}, "
                f"got {self.experts_per_token}"
            )
        if bool(self.dense_layers) != bool(self.dense_feed_forward):
            raise ValueError(
                "model dense_layers and dense_feed_forward go together: tell both or none"
            )
        if (self.dense_layers or self.shared_feed_forward) and not self.experts:
            raise ValueError("model dense_layers and shared_feed_forward need experts, which are 0")
        if self.dense_layers > self.layers:
            raise ValueError(
                f"model dense_layers must be at most layers {self.layers}, got {self.dense_layers}"
            )

    @property
    def query_width(self) -> int:
        """Numbers of a token's queries, all heads."""
        return self.heads * (self.head_width + self.rope_width)

    @property
    def kv_width(self) -> int:
        """Numbers of a token's keys, all heads."""
        return self.kv_heads * (self.head_width + self.rope_width)

    @property
    def value_width(self) -> int:
        """Numbers of a token's values, all heads."""
        return self.kv_heads * self.value_head_width

    @property
    def output_width(self) -> int:
        """Numbers that the attention puts out for a token."""
        return self.heads * self.value_head_width

    @property
    def dense(self) -> Transformer:
        """The model as if all its layers were as its first, dense ones."""
        return self.with_changes(
            experts=0,
            experts_per_token=0,
            shared_feed_forward=0,
            dense_layers=0,
            dense_feed_forward=0,
            feed_forward=self.dense_feed_forward,
        )

    def kinds(self, layers: int, *, is_first: bool) -> tuple[tuple[Transformer, int], ...]:
        """The layers of a stage: as models of one kind of layer, with how many of it.

        Dense layers are all in the first stage (``Deployment.require``).

        Parameters
        ----------
        layers
            How many the stage has, dense ones included.
        is_first
            Whether it is stage 0.
        """
        dense = self.dense_layers if is_first else 0
        found = ((self, layers - dense),) if layers > dense else ()
        return ((self.dense, dense), *found) if dense else found

    @property
    def layer_runs(self) -> tuple[tuple[Transformer, int], ...]:
        """All layers from the first on: as models of one kind of layer, with how many of it."""
        return self.kinds(self.layers, is_first=True)

    @property
    def active(self) -> int:
        """The feed-forward blocks that a token goes through."""
        return self.experts_per_token or 1

    def with_changes(self, **changes: Any) -> Transformer:
        """The same model but for some fields."""
        return replace(self, **changes)


def _nearest_divisor(number: int, wanted: int) -> int:
    found = [each for each in range(1, min(number, 2 * wanted) + 1) if number % each == 0]
    return min(found, key=lambda each: abs(each - wanted))
