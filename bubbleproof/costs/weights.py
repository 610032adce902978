"""Counts of weights: of the model, and of one device under tensor and expert parallelism.

A device of tensor t holds 1/t of each linear that is split and all of the norms, of the biases of
linears that are split by rows, and of a router. Of fewer key and value heads than t it holds one
head. Rows of the vocabulary are divided evenly, the last device's share filled up. Of experts a
device holds 1/e, each divided over t.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import LayerOperation, Number, layer_operations, norm_weights
from bubbleproof.costs.transformer import Transformer

PARTS = ("dense", "experts", "frozen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Numbers of weights: those that all replicas hold, those of experts, and those not trained."""

    dense: Number = 0
    experts: Number = 0
    frozen: Number = 0

    def __add__(self, other: Weights) -> Weights:
        return Weights(**{name: getattr(self, name) + getattr(other, name) for name in PARTS})

    def __mul__(self, times: int) -> Weights:
        return Weights(**{name: getattr(self, name) * times for name in PARTS})

    @property
    def total(self) -> Number:
        return whole(self.dense + self.experts + self.frozen)

    @property
    def gathered(self) -> Weights:
        """What a pass needs of them: the frozen ones as any others."""
        return Weights(dense=self.dense + self.frozen, experts=self.experts)


def layers_weights(model: Transformer, at: Deployment, layers: int, before: int = 0) -> Weights:
    """The weights of a stage's layers on a device: so many, ``before`` of them in other stages.

    Parameters
    ----------
    layers
        How many the stage has.
    before
        How many the stages before it have.
    """
    kinds = model.between(before, layers)
    return sum((layer_weights(kind, at) * count for kind, count in kinds), Weights())


def layer_weights(model: Transformer, at: Deployment) -> Weights:
    """The weights of one layer on a device."""
    return _layer_weights(model, at.tensor, at.expert, at.expert_cut, at.pipeline > 1)


@lru_cache(maxsize=1024)
def _layer_weights(
    model: Transformer, tensor: int, expert: int, cut: int, is_copied: bool
) -> Weights:
    at = Deployment(tensor=tensor, expert=expert, expert_tensor=cut)
    found = Weights()
    for operation in layer_operations(model):
        number = _of_device(operation, model, at)
        if operation.shared:
            found += Weights(dense=operation.vectors / Fraction(tensor) if is_copied else 0)
        elif model.frozen:
            found += Weights(frozen=number / Fraction(at.expert if operation.copies > 1 else 1))
        elif operation.copies > 1:
            found += Weights(experts=number / Fraction(at.expert))
        else:
            found += Weights(dense=number)
    return found


def embedding_weights(model: Transformer, at: Deployment) -> Weights:
    """The weights of the first stage before its layers, on a device."""
    norm = norm_weights(model) if model.embedding_norm else 0
    number = words(model, at) * model.hidden + model.positions * model.hidden + norm
    return Weights(frozen=number) if model.frozen else Weights(dense=number)


def head_weights(model: Transformer, at: Deployment, *, is_copied: bool = False) -> Weights:
    """The weights of the last stage behind its layers, on a device.

    ``is_copied``: the last stage holds a copy of a tied embedding, being another than the first.

    Parameters
    ----------
    is_copied
        Whether the last stage holds a copy of a tied embedding, being another than the first.

    Returns
    -------
    Weights
        Numbers of parameters.
    """
    rows = 0 if model.tied and not is_copied else words(model, at)
    bias = words(model, at) if model.head_bias else 0
    return Weights(dense=rows * model.hidden + bias + norm_weights(model))


def words(model: Transformer, at: Deployment) -> int:
    """The rows of the vocabulary that a device holds."""
    return -(-model.vocabulary // at.tensor)


def share(operation: LayerOperation, model: Transformer, at: Deployment) -> Fraction:
    """The part of a linear that a device holds, and computes."""
    if not operation.split_weights:
        return Fraction(1)
    if operation.copies > 1:
        return Fraction(1, at.expert_cut)
    if operation.name in ("key", "value"):
        return max(Fraction(1, at.tensor), Fraction(1, model.kv_heads))
    return Fraction(1, at.tensor)


def whole(number: Number) -> Number:
    """An integer where it is one."""
    return int(number) if number.denominator == 1 else number


def _of_device(operation: LayerOperation, model: Transformer, at: Deployment) -> Number:
    part = share(operation, model, at)
    inner, outer = operation.weights or (0, 0)
    vectors = operation.vectors * (part if operation.split_vectors else 1)
    return operation.copies * (inner * outer * part + vectors)
