"""A decoder-only transformer as numbers: its shape.

A layer is attention and a feed-forward block, each behind a norm, on a residual stream of
``hidden`` numbers a token. ``heads`` query heads of ``head_width`` share ``kv_heads`` heads of keys
and values (as many as queries: multi-head; fewer: grouped-query; one: multi-query). A *gated* block
(SwiGLU, GeGLU) has three linears, up, gate and down, a plain one (GeLU) up and down. In a
*parallel* layer both blocks read the layer's input, and their outputs are added at once (Falcon).
With ``experts`` the feed-forward block is that many blocks and a router; a token goes through
``experts_per_token`` of them. Positions are learned (``positions`` rows) or cost no weights (0).

``feed_forward`` may be a fraction: PipeMesh's Table II has 8/3 h whatever h is. All is counted in
numbers, not bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

Norm = Literal["layer", "rms"]
Biases = Literal["none", "inputs", "all"]
MOST = {"layers": 10_000, "heads": 1 << 16, "kv_heads": 1 << 16, "experts": 1 << 16}
LARGEST = 1 << 32  # of any other number of a shape
_POSITIVE = ("layers", "hidden", "heads", "feed_forward", "vocabulary", "norms")
_NATURAL = ("kv_heads", "head_width", "positions", "experts", "experts_per_token")


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

    layers: int
    hidden: int
    heads: int
    feed_forward: int | Fraction
    vocabulary: int
    kv_heads: int = 0
    head_width: int = 0
    positions: int = 0
    gated: bool = False
    norm: Norm = "layer"
    norms: int = 2
    embedding_norm: bool = False
    parallel: bool = False
    attention_biases: Biases = "none"
    feed_forward_bias: bool = False
    head_bias: bool = False
    tied: bool = False
    experts: int = 0
    experts_per_token: int = 0
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
        object.__setattr__(self, "kv_heads", self.kv_heads or heads)
        if heads % self.kv_heads:
            fit = _nearest_divisor(heads, self.kv_heads)
            raise ValueError(
                f"model kv_heads must divide heads {heads}, got {self.kv_heads}; use {fit}"
            )

    def _require_experts(self) -> None:
        if bool(self.experts) != bool(self.experts_per_token):
            raise ValueError("model experts and experts_per_token go together: tell both or none")
        if self.experts_per_token > self.experts:
            raise ValueError(
                f"model experts_per_token must be at most experts {self.experts}, "
                f"got {self.experts_per_token}"
            )

    @property
    def query_width(self) -> int:
        """Numbers of a token's queries, all heads."""
        return self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """Numbers of a token's keys, and of its values."""
        return self.kv_heads * self.head_width

    @property
    def active(self) -> int:
        """The feed-forward blocks that a token goes through."""
        return self.experts_per_token or 1

    def with_changes(self, **changes: Any) -> Transformer:
        """The same model but for some fields."""
        return replace(self, **changes)


# What members of a family share; the rest is told of each.
FAMILIES: dict[str, dict[str, Any]] = {
    "general": {},
    "gpt": {"attention_biases": "all", "feed_forward_bias": True, "tied": True, "dropout": True},
    "llama": {"gated": True, "norm": "rms"},
    "falcon": {"parallel": True, "tied": True},
    "mixture": {"gated": True, "norm": "rms"},
}
FIELDS = tuple(field.name for field in fields(Transformer))


def transformer(family: str = "general", **numbers: Any) -> Transformer:
    """A member of a family; ``feed_forward`` defaults to four times ``hidden`` where not gated.

    >>> transformer("gpt", layers=12, hidden=768, heads=12, vocabulary=50257).feed_forward
    3072

    Raises ``ValueError`` for an unknown family or field, and for one that is missing.
    """
    if family not in FAMILIES:
        raise ValueError(f"model family must be one of {', '.join(FAMILIES)}, got {family!r}")
    given = {**FAMILIES[family], **numbers}
    for name in given:
        if name not in FIELDS:
            raise ValueError(f"a model has no {name!r}; it has {', '.join(FIELDS)}")
    if "feed_forward" not in given and not given.get("gated") and "hidden" in given:
        given["feed_forward"] = 4 * given["hidden"]
    for name in ("layers", "hidden", "heads", "feed_forward", "vocabulary"):
        if name not in given:
            raise ValueError(f"model {name} is missing; a {family} model needs it")
    return Transformer(**given)


def _nearest_divisor(number: int, wanted: int) -> int:
    found = [each for each in range(1, min(number, 2 * wanted) + 1) if number % each == 0]
    return min(found, key=lambda each: abs(each - wanted))
