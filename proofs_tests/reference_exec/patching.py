"""Code put before or after what a function or a method does, for as long as a test lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch

from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.runtime import compute, optimizers, replica_collectives, updates

Key = tuple[int, int, int]  # (stage, microbatch, slice)
Marks = list[object]  # what tells that the code of a patch ran
Sum = Callable[[list[torch.Tensor]], torch.Tensor]


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


def data_of(patch: pytest.MonkeyPatch, marks: Marks, name: str, others: Mapping[int, int]) -> None:
    """Give microbatches the ``input``, or the ``target``, of ``others``."""
    right = getattr(compute.Batch, name)

    def given(self: compute.Batch, key: Key) -> object:
        marks.append(key[1])
        return right(self, (key[0], others.get(key[1], key[1]), key[2]))

    patch.setattr(compute.Batch, name, given)


def optimizer(
    patch: pytest.MonkeyPatch,
    marks: Marks,
    change: Callable[[torch.optim.Optimizer], object],
) -> None:
    """Change each optimizer of a rank as it is made."""
    right = optimizers.optimizer_of

    def made(*given: object) -> object:
        found = right(*given)  # type: ignore[arg-type]  # passed on
        assert isinstance(found, torch.optim.Optimizer)
        marks.append(change(found))
        return found

    patch.setattr(updates, "optimizer_of", made)


def summed(
    patch: pytest.MonkeyPatch,
    marks: Marks,
    change: Callable[
        [Callable[[list[torch.Tensor]], torch.Tensor], list[torch.Tensor]], torch.Tensor
    ],
) -> None:
    """Let ``change(right, parts)`` be the sum of a collective's parts."""
    right = replica_collectives._sum

    def total(parts: list[torch.Tensor]) -> torch.Tensor:
        marks.append(len(parts))
        return change(right, parts)

    patch.setattr(replica_collectives, "_sum", total)
