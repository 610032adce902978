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

A *windowed* attention sees the last ``window`` tokens, a *chunked* one those of its chunk of
``chunk`` tokens. ``extras`` are operations more (``costs.layer_extras``: norms of queries and keys,
sinks, gates). A layer with a ``mixer`` has those operations in place of the attention
(``costs.state_space``; the empty one: nothing), and one of ``feed_forward`` 0 no such block.

Layers of several kinds are ``runs``, from the first on: so many of a kind, and what it has other
than the model. Those of a tower in front (vision, audio) are the first of them, with ``tokens`` of
a sample of their own; modules that predict further tokens the last (``costs.further_layers``).

``frozen`` layers are not trained: of their "weights" alone, where a gradient passes through them to
what is trained before them, or not at all ("all"): they have no backward, and keep nothing for it.

Positions are learned (``positions`` rows) or cost no weights (0).

``feed_forward`` may be a fraction: PipeMesh's Table II has 8/3 h whatever h is. All is counted in
numbers, not bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

from bubbleproof.costs.layer_operation import LayerOperation
from bubbleproof.theory.pipelines.value_types import AtLeast

Positive = Annotated[int, AtLeast(1)]
Width = Annotated[int | Fraction, AtLeast(0)]
Norm = Literal["layer", "rms", "scale", "bare"]
Biases = Literal["none", "inputs", "output", "all"]
Frozen = Literal["", "weights", "all"]
MOST = {"layers": 10_000, "heads": 1 << 16, "kv_heads": 1 << 16, "experts": 1 << 16}
LARGEST = 1 << 32  # of any other number of a shape
LEAST = {"int": 0, "Positive": 1, "Width": 0}  # by the type of a field
_LATENT = ("query_rank", "rope_width")  # only with kv_rank
NO_EXPERTS = {"experts": 0, "experts_per_token": 0, "shared_feed_forward": 0}
NO_EXPERTS |= {"dense_layers": 0, "dense_feed_forward": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRun:
    """So many layers of a kind, with its name, and fields of a model by name: what it has other."""

    count: int
    kind: str
    changes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The shape of a model.

    ``kv_heads`` and ``head_width`` default to ``heads`` and ``hidden / heads``.
    ``attention_biases`` are none, those of query, key and value ("inputs"), or the output's as well
    ("all").
    ``norms`` counts the norms of a layer; ``embedding_norm`` is one more after the embedding. A
    layer norm has a scale and a shift, or a "scale" alone, or is "bare"; an RMS norm has a scale.
    ``relu``: what goes into a plain block's activation is not kept, which its output tells.
    ``tied``: the head reads the embedding's weights. ``dropout``: masks are kept for the backward.
    Raises ``ValueError`` for numbers that make no model.
    """

    layers: Positive
    hidden: Positive
    heads: Positive
    feed_forward: Width
    vocabulary: Positive
    kv_heads: int = 0
    head_width: int = 0
    positions: int = 0
    gated: bool = False
    relu: bool = False
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
    shared_feed_forward: int = 0
    dense_layers: int = 0
    dense_feed_forward: int = 0
    kv_rank: int = 0
    query_rank: int = 0
    rope_width: int = 0
    value_head_width: int = 0
    dropout: bool = False
    window: int = 0
    chunk: int = 0
    tokens: int = 0
    frozen: Frozen = ""
    extras: tuple[LayerOperation, ...] = ()
    mixer: tuple[LayerOperation, ...] | None = None
    runs: tuple[LayerRun, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        for name, least in _least().items():
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
        for one, other, most in (
            ("experts", "experts_per_token", ("experts_per_token", "experts")),
            ("dense_layers", "dense_feed_forward", ("dense_layers", "layers")),
        ):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise ValueError(f"model {one} and {other} go together: tell both or none")
            few, many = (getattr(self, name) for name in most)
            if few > many:
                raise ValueError(f"model {most[0]} must be at most {most[1]} {many}, got {few}")
        if (self.dense_layers or self.shared_feed_forward) and not self.experts:
            raise ValueError("model dense_layers and shared_feed_forward need experts, which are 0")
        if self.runs and (told := sum(run.count for run in self.runs)) != self.layers:
            raise ValueError(
                f"model pattern must be of layers {self.layers}, got {told}; tell both anew"
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
        return self.with_changes(**NO_EXPERTS, feed_forward=self.dense_feed_forward)

    @property
    def layer_runs(self) -> tuple[tuple[Transformer, int], ...]:
        """All layers from the first on: as models of one kind of layer, with how many of it."""
        if self.runs:
            plain = self.with_changes(runs=())
            kinds = dict.fromkeys(run.changes for run in self.runs)
            made = {changes: plain.with_changes(**dict(changes)) for changes in kinds}
            return tuple((made[run.changes], run.count) for run in self.runs)
        dense, others = self.dense_layers, self.layers - self.dense_layers
        found = ((self.dense, dense),) if dense else ()
        return (*found, (self, others)) if others else found

    def between(self, before: int, layers: int) -> tuple[tuple[Transformer, int], ...]:
        """A stage's layers in the same way: so many, behind so many others.

        Parameters
        ----------
        before
            Layers in stages before.
        layers
            Layers of the stage.
        """
        found, first = [], 0
        for kind, count in self.layer_runs:
            here = min(before + layers, first + count) - max(before, first)
            found += [(kind, here)] if here > 0 else []
            first += count
        return tuple(found)

    @property
    def active(self) -> int:
        """The feed-forward blocks that a token goes through."""
        return self.experts_per_token or 1

    def with_changes(self, **changes: Any) -> Transformer:
        """The same model but for some fields."""
        return replace(self, **changes)


@lru_cache(maxsize=1)
def _least() -> dict[str, int]:
    """The least of each field that is a number."""
    told = {field.name: str(field.type) for field in fields(Transformer)}
    return {name: LEAST[kind] for name, kind in told.items() if kind in LEAST}


def _nearest_divisor(number: int, wanted: int) -> int:
    found = [each for each in range(1, min(number, 2 * wanted) + 1) if number % each == 0]
    return min(found, key=lambda each: abs(each - wanted))
