"""The losses: scalars whose forward saves one tensor, the error, of the shape of what is scored.

Both have the gradient scale times error. A rank's live bytes count that tensor, so torch's own
losses, which save what each version of torch thinks fit, would not do.
"""

from __future__ import annotations

import torch
from torch.autograd.function import FunctionCtx


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
