"""The reference models: stages of layers (``layers``), their data, and their losses.

Everything follows from ``ModelSpec.seed`` and the stage's number, or the microbatch's and the
optimizer step's, so each rank builds its own stages and the oracles build all of them, bit for bit
the same; no two microbatches of a training have the same data. Values are drawn in
float64 and rounded to the model's type. They come from numpy: torch's own generator looks at no
more than 32 bits of its seed.

A stage is called with a ``WeightGradStore`` by a rank (its linears then know F/B/I/W) and with
``None`` by the oracles (plain torch). Losses are scalars whose forward saves one tensor, the error,
of the shape of what is scored, and have the gradient scale times error. A rank's live bytes count
that tensor, so torch's own losses, which save what each version of torch thinks fit, would not do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.broken import BrokenProgram, of_model
from bubbleproof.reference_exec.models.examined import examined, own_layers
from bubbleproof.reference_exec.models.footprint import of_size
from bubbleproof.reference_exec.models.layers import (
    DTYPES,
    Embedding,
    Head,
    LlamaLayer,
    MLPLayer,
    Prefix,
    TransformerLayer,
)
from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import EMBEDDING, HEAD, ModelSpec
from bubbleproof.reference_exec.models.own import OwnLayer, description, own_batch

Named = dict[tuple[int, str], torch.Tensor]  # by (stage, parameter name)
_STREAMS = {"weights": 0, "input": 1, "target": 2, "tied": 3}

_LAYERS: dict[str, type[MLPLayer] | type[TransformerLayer] | type[LlamaLayer]] = {
    "mlp": MLPLayer,
    "transformer": TransformerLayer,
    "llama": LlamaLayer,
}


class Stage(nn.Module):
    """One pipeline stage: (batch, sequence, hidden) to the same shape, or a user's own.

    ``own`` is that of the user's model, by default of a new build of it.
    """

    def __init__(self, spec: ModelSpec, stage: int, own: OwnLayer | None = None) -> None:
        super().__init__()
        if spec.kind == "own":
            self.layers = nn.ModuleList([own] if own else own_layers(spec, [stage]))
            self.embedding, self.head = None, None
            return
        layer = _LAYERS[spec.kind]
        self.layers = nn.ModuleList(layer(spec) for _ in range(spec.layers_of(stage)))
        self.embedding = Embedding(spec) if spec.is_embedding(stage) else None
        self.head = Head(spec) if spec.is_head(stage) else None
        generator = _generator(spec, "weights", stage)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                is_tied = spec.tied and name in (EMBEDDING, HEAD)
                source = _generator(spec, "tied", 0) if is_tied else generator
                parameter.copy_(_initial(name, parameter.shape, source))

    def forward(
        self,
        x: torch.Tensor,
        store: WeightGradStore | None,
        prefixes: Sequence[Prefix] | None = None,
    ) -> torch.Tensor:
        """The stage's output; ``prefixes`` has an entry per layer where the sample is sliced."""
        if self.embedding is not None:
            x = self.embedding(x)
        for index, layer in enumerate(self.layers):
            x = layer(x, store, None if prefixes is None else prefixes[index])
        return x if self.head is None else self.head(x, store)

    def plain(self, given: torch.Tensor) -> torch.Tensor:
        """The stage's output with no message between it and other stages; nothing is deferred.

        Of a user's model that may be more than a tensor, and so may be what it is given.
        """
        first = self.layers[0] if len(self.layers) else None
        if isinstance(first, OwnLayer):
            return first.plain(given)
        result: torch.Tensor = self(given, None)
        return result

    def gemms(self) -> tuple[str, ...]:
        """The names of the parameters whose gradient W computes; I computes the others'.

        They stand in the order of ``shares``, from the last parameter to the first.
        """
        forward: list[str] = []
        for name, module in self.named_modules():
            if isinstance(module, DeferredLinear):
                forward.append(f"{name}.weight")
            elif isinstance(module, OwnLayer):
                forward += (f"{name}.{weight}" for weight in module.gemm_weights())
        return tuple(reversed(forward))


def whole_model(spec: ModelSpec, num_stages: int) -> list[Stage]:
    """All stages; of a user's model, of one build."""
    stages = range(num_stages)
    if spec.kind != "own":
        return [Stage(spec, stage) for stage in stages]
    return [Stage(spec, stage, own) for stage, own in enumerate(own_layers(spec, stages))]


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that get gradients and are stepped, by name: all that are not frozen."""
    return {name: each for name, each in module.named_parameters() if each.requires_grad}


def gradients_of(stages: Mapping[int, nn.Module]) -> Named:
    """The gradients of all trained parameters. Raises ``BrokenProgram`` where one has none."""
    found: Named = {}
    for stage, module in stages.items():
        for name, parameter in trained(module).items():
            if parameter.grad is None:
                raise BrokenProgram(f"stage {stage} {name} has no gradient")
            found[stage, name] = parameter.grad
    return found


def weights_of(stages: Mapping[int, nn.Module]) -> Named:
    """The weights of all parameters, on the host."""
    return {
        (stage, name): parameter.detach().cpu()
        for stage, module in stages.items()
        for name, parameter in module.named_parameters()
    }


def microbatch_loss(
    spec: ModelSpec, y: torch.Tensor, target: torch.Tensor, num_microbatches: float
) -> torch.Tensor:
    """This microbatch's part of the batch loss, the mean of (y - target)^2 / 2 over the batch.

    With a vocabulary it is the mean cross-entropy of words. A user's own loss is divided by the
    number of microbatches, or by what it counts for where they differ (``ReplayPlan.divisor``).
    """
    if spec.kind == "own":
        with of_model(None, "its loss"):
            return description(spec).loss(y, target) / num_microbatches
    if spec.vocabulary:
        scale = 1.0 / (num_microbatches * spec.batch * spec.sequence)
        return cross_entropy(y, target, scale)
    return squared_error(y, target, 1.0 / (num_microbatches * math.prod(spec.shape)))


def run_backward(
    spec: ModelSpec, losses: torch.Tensor | Sequence[torch.Tensor], scale: float | None = None
) -> None:
    """Torch's ordinary backward, of ``scale`` times the losses where it is given.

    What a user's model raises in it is told as that.
    """
    every = [losses] if isinstance(losses, torch.Tensor) else list(losses)
    begins = [None if scale is None else loss.detach().double().mul(0) + scale for loss in every]
    with of_model(None, "B") if spec.kind == "own" else nullcontext():
        torch.autograd.backward(
            every,
            [b if b is None else b.to(loss) for b, loss in zip(begins, every, strict=True)],
        )


def microbatch_input(
    spec: ModelSpec, microbatch: int, slice_index: int = 0, num_slices: int = 1, *, step: int = 0
) -> torch.Tensor:
    """The input of one microbatch or of a slice of it: (batch, length, hidden), words without.

    ``step`` counts the optimizer steps before; each has microbatches of its own. Raises
    ``ValueError`` where a user's model gives a step inputs of another shape.
    """
    return _data(spec, "input", microbatch, step, slice_index, num_slices)


def microbatch_target(
    spec: ModelSpec, microbatch: int, slice_index: int = 0, num_slices: int = 1, *, step: int = 0
) -> torch.Tensor:
    """What the last stage should put out, (batch, length, hidden), or should score highest."""
    return _data(spec, "target", microbatch, step, slice_index, num_slices)


def require_steps(spec: ModelSpec, steps: int) -> None:
    """Raise ``ValueError`` where a user's model changes the shape of microbatch 0 in a step.

    What it does to others is found by the ranks that take them.
    """
    for step in range(1, steps if spec.kind == "own" else 0):
        microbatch_input(spec, 0, step=step)


def message_shape(
    spec: ModelSpec, stage: int, slice_index: int = 0, num_slices: int = 1
) -> tuple[int, ...]:
    """The shape of the activation that enters ``stage``, and of its gradient."""
    if spec.kind == "own":
        return examined(spec)[stage].input_shape
    return (spec.batch, spec.slice_length(slice_index, num_slices), spec.hidden)


def _data(
    spec: ModelSpec, stream: str, microbatch: int, step: int, slice_index: int, num_slices: int
) -> torch.Tensor:
    if spec.kind == "own":
        return _own_data(spec, stream, microbatch, step)
    generator = _generator(spec, stream, microbatch, step)
    if spec.vocabulary:
        sample = torch.from_numpy(generator.integers(spec.vocabulary, size=spec.shape[:2]))
    else:
        sample = torch.from_numpy(generator.standard_normal(spec.shape))
    start = spec.slice_start(slice_index, num_slices)
    values = sample[:, start : start + spec.slice_length(slice_index, num_slices)]
    dtype = torch.int64 if spec.vocabulary else DTYPES[spec.dtype]
    return values.contiguous().to(dtype, copy=True)  # torch's own alignment


def _own_data(spec: ModelSpec, stream: str, microbatch: int, step: int) -> torch.Tensor:
    given, target = own_batch(spec, microbatch, step)
    expected = examined(of_size(spec, microbatch))[0].input_shape
    if tuple(given.shape) != expected:
        raise ValueError(
            f"model {spec.factory}: the input of microbatch {microbatch} of step {step} must be of "
            f"shape {expected}, got {tuple(given.shape)}"
        )
    return target if stream == "target" else given


def _generator(spec: ModelSpec, stream: str, number: int, step: int = 0) -> np.random.Generator:
    """A generator of its own for every seed, stage, microbatch and step."""
    return np.random.default_rng([spec.seed, _STREAMS[stream], number, step])


def _initial(name: str, shape: torch.Size, generator: np.random.Generator) -> torch.Tensor:
    """GEMM weights of variance 1 / inputs, norm gains around 1, biases around 0, in float64."""
    values = torch.from_numpy(generator.standard_normal(tuple(shape)))
    if len(shape) == 2:
        return values / math.sqrt(shape[1])
    return 0.1 * values + (1.0 if name.endswith("weight") else 0.0)


def squared_error(y: torch.Tensor, target: torch.Tensor, scale: float) -> torch.Tensor:
    """scale / 2 times the sum of (y - target)^2, tensors of one shape; the error is y - target."""
    return _applied(_SquaredError, y, target, scale)


def cross_entropy(scores: torch.Tensor, words: torch.Tensor, scale: float) -> torch.Tensor:
    """scale times the summed cross-entropy of ``words`` (...) under ``scores`` (..., vocabulary).

    The error is the probabilities, less 1 at the word that should be.
    """
    return _applied(_CrossEntropy, scores, words, scale)


class _ErrorTimesScale(torch.autograd.Function):
    """What the losses' backwards share; their forwards call ``keep``."""

    @staticmethod
    def keep(ctx: FunctionCtx, error: torch.Tensor, scale: float) -> None:
        ctx.save_for_backward(error)
        ctx.scale = scale  # type: ignore[attr-defined]  # torch's idiom

    @staticmethod
    def backward(
        ctx: FunctionCtx, *output_gradients: torch.Tensor
    ) -> tuple[torch.Tensor, None, None]:
        (error,) = ctx.saved_tensors  # type: ignore[attr-defined]  # absent from torch's stubs
        scale: float = ctx.scale  # type: ignore[attr-defined]  # set in keep
        return error * (output_gradients[0] * scale), None, None


class _SquaredError(_ErrorTimesScale):
    @staticmethod
    def forward(
        ctx: FunctionCtx, y: torch.Tensor, target: torch.Tensor, scale: float
    ) -> torch.Tensor:
        error = y - target
        _ErrorTimesScale.keep(ctx, error, scale)
        return error.square().sum() * (scale / 2)


class _CrossEntropy(_ErrorTimesScale):
    @staticmethod
    def forward(
        ctx: FunctionCtx, scores: torch.Tensor, words: torch.Tensor, scale: float
    ) -> torch.Tensor:
        index = words.unsqueeze(-1)
        chances = torch.log_softmax(scores, dim=-1)
        error = chances.exp()
        error.scatter_(-1, index, error.gather(-1, index) - 1.0)
        _ErrorTimesScale.keep(ctx, error, scale)
        return chances.gather(-1, index).sum() * -scale


def _applied(
    loss: type[_ErrorTimesScale], given: torch.Tensor, target: torch.Tensor, scale: float
) -> torch.Tensor:
    result: torch.Tensor = loss.apply(given, target, scale)  # type: ignore[no-untyped-call]  # torch's stub
    return result
