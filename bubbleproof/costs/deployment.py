"""How a model is cut over devices, and what one microbatch is.

tensor t: linears and heads over t devices; with ``sequence_parallel`` what is between them is cut
along the sequence over the same devices. context c: the sequence of a sample over c devices, all of
the model on each. expert e: the experts of a layer over e of the data-parallel devices. pipeline p:
layers in p stages. data d: replicas. ``zero`` 0 to 3: what replicas (d c devices that hold the same
weights) share among them: nothing; optimizer state; gradients as well; weights as well. Among
``shard`` of them each (HSDP), 0: all.
A microbatch is ``micro_batch`` samples of ``sequence`` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from typing import Any

from bubbleproof.costs.accounting import ACCOUNTINGS, PRECISIONS, Accounting, Precision
from bubbleproof.costs.recompute_scopes import SCOPES, words_of
from bubbleproof.costs.transformer import Transformer

__all__ = ["SCOPES", "Deployment"]
COUNTS = ("tensor", "pipeline", "data", "context", "expert", "micro_batch", "sequence")
HIGHEST_ZERO = 3
LARGEST = 1 << 24  # of any count; sequences of so many tokens are not trained on


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """See the module's text; ``accounting`` and ``precision`` are names (``accounting``).

    ``precision`` defaults to the accounting's. Raises ``ValueError`` for numbers below 1 and for
    names that are not there.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 0
    shard: int = 0
    sequence_parallel: bool = True
    zero: int = 0
    micro_batch: int = 1
    sequence: int = 2048
    scope: str = "none"
    accounting: str = "megatron"
    precision: str = ""

    def __post_init__(self) -> None:
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
            if getattr(self, name) > LARGEST:
                raise ValueError(f"{name} must be at most {LARGEST}, got {getattr(self, name)}")
        if not 0 <= self.zero <= HIGHEST_ZERO:
            raise ValueError(f"zero must be 0 to {HIGHEST_ZERO}, got {self.zero}")
        words_of(self.scope)
        _one_of("accounting", self.accounting, ACCOUNTINGS)
        if not self.precision:
            object.__setattr__(self, "precision", ACCOUNTINGS[self.accounting].precision)
        _one_of("precision", self.precision, PRECISIONS)

    @property
    def rules(self) -> Accounting:
        """What counts as kept."""
        return ACCOUNTINGS[self.accounting]

    @property
    def bytes_of(self) -> Precision:
        """What a parameter takes."""
        return PRECISIONS[self.precision]

    @property
    def devices(self) -> int:
        """The devices of all parallel sizes; experts are spread over the data-parallel ones."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def expert_cut(self) -> int:
        """Devices over which each expert is cut."""
        return self.expert_tensor or (1 if self.replicas % self.expert else self.tensor)

    @property
    def expert_replicas(self) -> Fraction:
        """The devices that hold the same experts' weights."""
        return Fraction(self.replicas * self.tensor, self.expert * self.expert_cut)

    @property
    def sharers(self) -> int:
        """The devices that share what the ZeRO level shares."""
        return self.shard or self.replicas

    @property
    def replicas(self) -> int:
        """The devices that hold the same dense weights."""
        return self.data * self.context

    @property
    def of_microbatch(self) -> Deployment:
        """What a microbatch sees of it within a layer: one stage, no replicas, nothing shared."""
        cut = self.expert_cut if self.expert > 1 else 0
        return self.with_changes(pipeline=1, data=1, zero=0, expert_tensor=cut, shard=0)

    def seen_by(self, kind: Transformer) -> Deployment:
        """What layers of the kind see of it: those of a tower have tokens of their own."""
        return self.with_changes(sequence=kind.tokens) if kind.tokens else self

    @property
    def of_weights(self) -> Deployment:
        """What the weights see of it and their state: the same for any microbatch and scope."""
        return self.with_changes(micro_batch=1, scope="none")

    def with_changes(self, **changes: Any) -> Deployment:
        """The same but for some fields."""
        return replace(self, **changes)

    def require(self, model: Transformer) -> None:
        """Raise ``ValueError`` where the model cannot be cut so, with a number that can."""
        t = self.tensor
        for kind in {kind: None for kind, _ in model.layer_runs}:
            if kind.mixer is None:
                _divides("tensor", t, "heads", kind.heads)
            _divides("tensor", t, "feed_forward", kind.feed_forward)
            if kind.mixer is None and max(t, kind.kv_heads) % min(t, kind.kv_heads):
                raise ValueError(
                    f"tensor must divide kv_heads {kind.kv_heads} or be a multiple, got {t}"
                )
        _divides("pipeline", self.pipeline, "layers", model.layers)
        if self.expert > 1:
            experts = [kind.experts for kind, _ in model.layer_runs if kind.experts]
            if not experts:
                raise ValueError(f"expert must be 1 for a model without experts, got {self.expert}")
            _divides("expert", self.expert, "experts", gcd(*experts))
            spread = self.replicas * self.tensor // self.expert_cut
            _divides("expert", self.expert, "data x context x tensor", spread)
        if self.shard:
            _divides("shard", self.shard, "data x context", self.replicas)
        _divides("context", self.context, "sequence", self.sequence)
        if 0 < model.positions < self.sequence:
            raise ValueError(
                f"sequence must be at most the model's positions {model.positions}, "
                f"got {self.sequence}; use sequence = {model.positions}"
            )
        if self.sequence_parallel:
            _divides("tensor", t, "sequence over context", self.sequence // self.context)


def _one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def _divides(name: str, value: int, what: str, number: Any) -> None:
    if number % value == 0 or number.denominator > 1:
        return
    fits = [each for each in range(1, min(int(number), 2 * value) + 1) if number % each == 0]
    nearest = min(fits, key=lambda each: abs(each - value), default=1)
    raise ValueError(f"{name} must divide {what} {number}, got {value}; use {name} = {nearest}")
