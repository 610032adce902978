"""Code put before or after what a function or a method does, for as long as a test lasts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bubbleproof.reference_exec.models.reference import Stage


def multiply() -> torch.Size:
    """The shape of a product of matrices that nobody needs."""
    return (torch.ones(3, 4) @ torch.ones(4, 5)).shape


def before(patch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[..., object]) -> None:
    """Call ``act`` with what ``owner.name`` is given by position, before it."""
    right = getattr(owner, name)

    def call(*given: object, **how: object) -> object:
        act(*given)
        return right(*given, **how)

    patch.setattr(owner, name, call)


def after(patch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[..., object]) -> None:
    """Call ``act`` with what ``owner.name`` was given by position, after it."""
    right = getattr(owner, name)

    def call(*given: object, **how: object) -> object:
        result = right(*given, **how)
        act(*given)
        return result

    patch.setattr(owner, name, call)


def after_forward(patch: pytest.MonkeyPatch, act: Callable[[Stage, torch.Tensor], object]) -> None:
    """Call ``act`` with each stage and its output, after its forward."""
    right = Stage.forward

    def forward(self: Stage, *given: object) -> torch.Tensor:
        output = right(self, *given)  # type: ignore[arg-type]  # passed on
        act(self, output)
        return output

    patch.setattr(Stage, "forward", forward)
