"""A user's own model, examined before anything runs: shapes, bytes, and whether it can be replayed.

One dry forward and backward per stage, on microbatch 0, measures what the closed forms of
``footprint`` say of the reference models: the bytes held from F to B or I, and from I to W. What
would make a replay wrong or unequal is refused: shapes that do not fit, randomness, buffers that a
forward changes, parameters that two stages share, parameters and inputs that get no gradient, a
factory that gives other weights each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn

from bubbleproof.reference_exec.births import BIRTHS, constants_of, living_storages
from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Ledger, keys_of
from bubbleproof.reference_exec.models.boundary import as_message
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import (
    OwnLayer,
    OwnModel,
    build,
    own_batch,
    replaceable,
    told,
)
from bubbleproof.reference_exec.saved import SavedTensors


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """One stage of a user's model: its input's shape and bytes, and the bytes that it holds.

    ``activation_bytes`` from F to B or I, ``operand_bytes`` from I to W, of which each of the GEMMs
    of W lets go ``gemm_bytes``, in the order of ``shares``; ``weight_bytes`` of its
    ``num_parameters`` parameters; ``kept_bytes`` what it keeps of its last microbatch, beside the
    weights, until the next; ``sample`` is an input;
    ``replaced`` are the linears whose gradients W computes.
    """

    input_shape: tuple[int, ...]
    input_bytes: int
    activation_bytes: int
    operand_bytes: int
    kept_bytes: int
    sample: torch.Tensor = field(repr=False, compare=False)
    gemm_bytes: tuple[int, ...]
    weight_bytes: int
    num_parameters: int
    replaced: tuple[str, ...]


@lru_cache(maxsize=8)
def examined(spec: ModelSpec) -> tuple[StageFacts, ...]:
    """The facts of every stage. Raises ``ValueError`` naming the stage that cannot be replayed."""
    model, again = build(spec), build(spec)
    _require_same_weights(spec, model, again)
    _require_own_parameters(model)
    x, target = own_batch(spec, 0)
    facts = []
    with torch.random.fork_rng(devices=[]):
        for stage, module in enumerate(model.stages):
            x = as_message(x.detach()).requires_grad_(stage > 0)
            is_last = stage == len(model.stages) - 1
            y = _output(stage, module, x, DTYPES[spec.dtype])
            replaced = replaceable(module, x)
            layer = OwnLayer(module, replaced)
            score = partial(_score, model, target) if is_last else _itself
            facts.append(_DryRun(stage, layer, x, score).measured(replaced))
            x = y
    return tuple(facts)


def own_layer(spec: ModelSpec, stage: int) -> OwnLayer:
    """A new build of one stage, its linears replaced."""
    return OwnLayer(build(spec).stages[stage], examined(spec)[stage].replaced)


def _require_same_weights(spec: ModelSpec, model: OwnModel, again: OwnModel) -> None:
    pairs = zip(model.stages, again.stages, strict=True)
    for stage, (first, second) in enumerate(pairs):
        named = dict(second.named_parameters())
        for name, parameter in first.named_parameters():
            if not torch.equal(parameter, named[name]):
                raise ValueError(
                    f"model {spec.factory} gives stage {stage} {name} other values the second "
                    "time; draw them from a seed of its own"
                )


def _require_own_parameters(model: OwnModel) -> None:
    owner: dict[int, tuple[int, str]] = {}
    for stage, module in enumerate(model.stages):
        for name, parameter in module.named_parameters():
            other = owner.setdefault(id(parameter), (stage, name))
            if other[0] != stage:
                raise ValueError(
                    f"model stages {other[0]} and {stage} share the parameter {other[1]}; each "
                    "stage must have its own"
                )


def _output(stage: int, module: nn.Module, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The output of a stage, after two forwards that must agree and leave its buffers alone."""
    given = f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    outputs: list[torch.Tensor] = []
    for seed in range(2):
        torch.manual_seed(seed)
        try:
            y = module(x)
        except Exception as error:  # a user's module may raise anything
            whose = f"what stage {stage - 1} gives, " if stage else "the input, "
            raise ValueError(
                f"model stage {stage} cannot take {whose}{given}: {told(error)}"
            ) from error
        if not isinstance(y, torch.Tensor) or y.dtype != dtype:
            found = y.dtype if isinstance(y, torch.Tensor) else type(y).__name__
            raise ValueError(f"model stage {stage} must give one tensor of {dtype}, got {found}")
        outputs.append(y.detach())
    for name, buffer in module.named_buffers():
        if not torch.equal(buffer, before[name]):
            raise ValueError(
                f"model stage {stage} changes its buffer {name} in a forward; ranks see "
                "microbatches in the schedule's order, so it must not"
            )
    if not torch.equal(*outputs):
        raise ValueError(
            f"model stage {stage} gives another output the second time; dropout and other "
            "randomness must be off (p = 0 or eval())"
        )
    return outputs[0]


class _Reading(NamedTuple):
    """The bytes that something in a ledger needs, and those that live without."""

    needed: int
    unneeded: int

    @classmethod
    def of(cls, ledger: Ledger) -> _Reading:
        BIRTHS.leave_to(ledger)
        unneeded = ledger.unneeded_bytes()
        return cls(ledger.needed_bytes, unneeded)


@dataclass(frozen=True, slots=True, eq=False)
class _DryRun:
    """One stage on one input, ``score`` its loss where it is the last."""

    stage: int
    layer: OwnLayer
    x: torch.Tensor
    score: Callable[[torch.Tensor], torch.Tensor]

    def measured(self, replaced: Sequence[str]) -> StageFacts:
        """The bytes that live after a forward, after an I and after each GEMM.

        The stage runs twice: what it keeps from one microbatch to the next, and no more of the
        second, is its own (``kept_bytes``); what grows is nobody's and is not predicted.
        """
        ledger = Ledger()
        ledger.exclude([*self.layer.parameters(), *self.layer.buffers()])
        ledger.exclude_storages(living_storages())
        ledger.follow(constants_of([self.layer]))
        ledger.elsewhere.append(
            lambda: keys_of(parameter.grad for parameter in self.layer.parameters())
        )
        try:
            with BIRTHS.watched():
                BIRTHS.forget()
                first = self._readings(ledger)
                second = self._readings(ledger)
        except BrokenProgram as error:
            raise ValueError(f"model stage {self.stage}: {error}") from error
        kept = first[-1].unneeded
        held = [reading.needed + max(reading.unneeded - kept, 0) for reading in first]
        for name, parameter in self.layer.module.named_parameters():
            if parameter.grad is None or not parameter.requires_grad:
                raise ValueError(f"model stage {self.stage}: its parameter {name} gets no gradient")
        return StageFacts(
            sample=self.x.detach(),
            input_shape=tuple(self.x.shape),
            input_bytes=self.x.numel() * self.x.element_size(),
            activation_bytes=held[0],
            operand_bytes=held[1],
            gemm_bytes=tuple(before - after for before, after in pairwise(held[1:-1])),
            kept_bytes=max(2 * kept - max(second[-1].unneeded, kept), 0),
            weight_bytes=sum(p.numel() * p.element_size() for p in self.layer.parameters()),
            num_parameters=len([*self.layer.parameters()]),
            replaced=tuple(replaced),
        )

    def _readings(self, ledger: Ledger) -> list[_Reading]:
        """After F, after I, after each GEMM of W, and at the end."""
        store = WeightGradStore(ledger)
        store.is_deferring = True
        given = self.x.detach().clone().requires_grad_(self.stage > 0)
        with SavedTensors(ledger) as saved:
            root = self.layer(given, store)
            if not root.requires_grad:
                raise ValueError(
                    f"model stage {self.stage}: its output has no gradient; a stage needs "
                    "parameters, or an input of the stage before that it does not cut off"
                )
            root = self.score(root)
        saved.end_with(root, given)
        found = [_Reading.of(ledger)]
        torch.autograd.backward([root], [torch.ones_like(root)])
        if self.stage and given.grad is None:
            raise ValueError(f"model stage {self.stage}: its input gets no gradient to send back")
        del root, given
        found.append(_Reading.of(ledger))
        for weight in filter(store.has, reversed(self.layer.gemm_weights())):
            store.run([weight])
            found.append(_Reading.of(ledger))
        return [*found, _Reading.of(ledger)]


def _itself(output: torch.Tensor) -> torch.Tensor:
    return output


def _score(model: OwnModel, target: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """The loss of an output as a replay takes it. Raises ``ValueError`` where it is none."""
    try:
        loss = model.loss(output, target.clone())
    except Exception as error:  # whatever the user's function raises
        raise ValueError(f"model loss failed: {told(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise ValueError("model loss must be one number")
    if not loss.requires_grad:
        raise ValueError("model loss has no gradient; it must be computed from the output")
    return loss / 1  # a replay divides it by the number of microbatches
