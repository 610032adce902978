"""Parcels: what a stage of a user's model takes or gives, where it is more than one tensor.

A stage may take and give tuples, lists and dictionaries of tensors of any type (masks, integers),
of numbers, text and None. A message is one tensor, so they travel as a parcel: the bytes of all
tensors and numbers one after the other, each at a multiple of ``ALIGNED`` bytes, in a tensor of the
replay's type. Its gradient is a parcel alike, with zeros where a thing has no gradient. Text and
None, and how all of it is nested, must be the same for every microbatch: they are not sent.

A tensor of the replay's type alone is its own message.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import torch
from torch.autograd.function import FunctionCtx
from torch.utils import _pytree as pytree

ALIGNED = 16
T = TypeVar("T")
_NUMBERS: dict[type, torch.dtype] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
}


class _Item(NamedTuple):
    """A thing of a parcel: a tensor of a type and shape, a number of a kind, or a constant."""

    dtype: torch.dtype | None = None
    shape: tuple[int, ...] = ()
    kind: type | None = None
    constant: object = None
    has_gradient: bool = False

    @property
    def num_bytes(self) -> int:
        return 0 if self.dtype is None else self.dtype.itemsize * math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Parcel:
    """How things lie in a message of ``dtype``; ``nesting`` is torch's name of how they nest."""

    nesting: pytree.TreeSpec
    items: tuple[_Item, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, value: object, dtype: torch.dtype) -> Parcel:
        """Raises ``TypeError`` for a thing that cannot be sent."""
        leaves, nesting = pytree.tree_flatten(value)
        items = tuple(map(_item, leaves))
        if not any(item.has_gradient for item in items):  # of a first stage that is frozen
            items = tuple(_with_gradient(item) for item in items)
        return cls(nesting, items, dtype)

    def is_like(self, other: Parcel) -> bool:
        """Whether the same things lie in both; what has gradients says the first that was made.

        A pass of a stage alone may have none.
        """
        pairs = zip(self.items, other.items, strict=False)
        return self.nesting == other.nesting and all(
            mine._replace(has_gradient=its.has_gradient) == its for mine, its in pairs
        )

    @property
    def starts(self) -> list[int]:
        """The first byte of each thing, and behind the last the bytes of all."""
        found = [0]
        for item in self.items:
            found.append(found[-1] + -(-item.num_bytes // ALIGNED) * ALIGNED)
        return found

    @property
    def shape(self) -> tuple[int]:
        """That of the message."""
        return (self.starts[-1] // self.dtype.itemsize,)

    def packed(self, value: object) -> torch.Tensor:
        """The message of a value that lies so."""
        tensors = [_as_tensor(leaf) for leaf in pytree.tree_leaves(value)]
        message: torch.Tensor = _Packed.apply(self, *(t for t in tensors if t is not None))  # type: ignore[no-untyped-call]  # torch's stub
        return message

    def opened(self, message: torch.Tensor) -> object:
        """The value in a message."""
        found: Sequence[torch.Tensor] = _Opened.apply(self, message)  # type: ignore[no-untyped-call]  # torch's stub
        tensors = iter(found)
        leaves = [
            item.constant
            if item.dtype is None
            else next(tensors)
            if item.kind is None
            else item.kind(next(tensors).item())
            for item in self.items
        ]
        value: object = pytree.tree_unflatten(leaves, self.nesting)
        return value

    def joined(self, tensors: Sequence[torch.Tensor | None], like: torch.Tensor) -> torch.Tensor:
        """The bytes of tensors one after the other, zeros for those that are not there."""
        content = torch.zeros(self.starts[-1], dtype=torch.uint8, device=like.device)
        for (start, _), tensor in zip(self._sent(), tensors, strict=True):
            if tensor is not None:
                content[start : start + tensor.nbytes] = _bytes_of(tensor)
        return content.view(self.dtype)

    def parted(self, message: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of a message, each with a storage of its own."""
        content = _bytes_of(message)
        found = []
        for start, item in self._sent():
            part = content[start : start + item.num_bytes].clone()
            found.append(part.view(item.dtype or torch.uint8).view(item.shape))
        return found

    def _sent(self) -> list[tuple[int, _Item]]:
        pairs = zip(self.starts, self.items, strict=False)
        return [(start, item) for start, item in pairs if item.dtype is not None]

    @property
    def gradients(self) -> list[bool]:
        """Which of the tensors have gradients."""
        return [item.has_gradient for _, item in self._sent()]


def _item(leaf: object) -> _Item:
    if isinstance(leaf, torch.Tensor):
        if leaf.layout is not torch.strided:
            raise TypeError(f"a sparse tensor ({leaf.layout}), which cannot be sent: to_dense()")
        return _Item(leaf.dtype, tuple(leaf.shape), has_gradient=leaf.requires_grad)
    if type(leaf) in _NUMBERS:
        return _Item(_NUMBERS[type(leaf)], (), type(leaf))
    if leaf is None or isinstance(leaf, str):
        return _Item(constant=leaf)
    raise TypeError(
        f"a {type(leaf).__name__}, which cannot be sent: give tensors, numbers, text and None, in "
        "tuples, lists and dictionaries"
    )


def _with_gradient(item: _Item) -> _Item:
    is_floating = item.dtype is not None and item.dtype.is_floating_point and item.kind is None
    return item._replace(has_gradient=is_floating)


def _as_tensor(leaf: object) -> torch.Tensor | None:
    if isinstance(leaf, torch.Tensor):
        return leaf
    number = _NUMBERS.get(type(leaf))
    return None if number is None else torch.tensor(leaf, dtype=number)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, parcel: Parcel, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.parcel = parcel  # type: ignore[attr-defined]  # torch's idiom
        return parcel.joined(tensors, _on_device(tensors))

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        parcel: Parcel = ctx.parcel  # type: ignore[attr-defined]  # set in forward
        pairs = zip(parcel.parted(gradients[0]), parcel.gradients, strict=True)
        return (None, *(part if has_gradient else None for part, has_gradient in pairs))


class _Opened(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, parcel: Parcel, message: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.parcel, ctx.like = parcel, message.new_empty(0)  # type: ignore[attr-defined]  # torch's idiom
        ctx.set_materialize_grads(False)
        parts = parcel.parted(message)
        pairs = zip(parts, parcel.gradients, strict=True)
        ctx.mark_non_differentiable(*(part for part, has_gradient in pairs if not has_gradient))
        return tuple(parts)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: torch.Tensor | None) -> tuple[None, torch.Tensor]:
        parcel: Parcel = ctx.parcel  # type: ignore[attr-defined]  # set in forward
        return None, parcel.joined(gradients, ctx.like)  # type: ignore[attr-defined]  # set in forward


def _on_device(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The first that is not on the cpu, where numbers of Python are; else the first."""
    away = [tensor for tensor in tensors if tensor.device.type != "cpu"]
    return [*away, *tensors, torch.empty(0)][0]


@dataclass(frozen=True, slots=True)
class Parcels:
    """The parcels of a model in a type by the stage that takes them and the message's shape."""

    dtype: torch.dtype
    known: dict[tuple[int, tuple[int, ...]], Parcel] = field(default_factory=dict)

    def sent(self, stage: int, value: object, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The message to ``stage`` of a value: itself where it is a tensor of the type.

        Raises ``TypeError`` for what cannot be sent, and ``ValueError`` where a message of that
        size was another before.
        """
        if isinstance(value, torch.Tensor) and (dtype or value.dtype == self.dtype):
            return value
        parcel = Parcel.of(value, dtype or self.dtype)
        first = self.known.setdefault((stage, parcel.shape), parcel)
        if not first.is_like(parcel):
            raise ValueError(
                "a stage must give the same things for every microbatch of a size, and stage "
                f"{stage - 1} gives {described(value)}, which it did not"
            )
        return first.packed(value)

    def opened(self, stage: int, message: torch.Tensor) -> object:
        """What ``stage`` takes, in a message to it."""
        parcel = self.known.get((stage, tuple(message.shape)))
        return message if parcel is None else parcel.opened(message)


def called(module: torch.nn.Module, given: object) -> object:
    """What a stage gives: things of a tuple or list are its arguments, of a dictionary by name."""
    if isinstance(given, tuple | list):
        return module(*given)
    return module(**given) if isinstance(given, dict) else module(given)


def tensors_of(value: object) -> list[torch.Tensor]:
    """All tensors of a value, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def with_leaves(value: object, tensors: Sequence[torch.Tensor]) -> object:
    """A value with other tensors in the place of its own."""
    left = iter(tensors)
    found: object = pytree.tree_map_only(torch.Tensor, lambda _: next(left), value)
    return found


def joined_rows(values: Sequence[object]) -> object:
    """Values that nest alike as one, whose tensors have the rows of all."""
    rows = zip(*map(tensors_of, values), strict=True)
    return with_leaves(values[0], [torch.cat(tensors) for tensors in rows])


def described(value: object) -> str:
    """The type and shape of each tensor of a value, and what else is in it."""

    def named(leaf: object) -> str:
        if not isinstance(leaf, torch.Tensor):
            return repr(leaf)
        return f"{str(leaf.dtype).removeprefix('torch.')} {tuple(leaf.shape)}"

    return ", ".join(map(named, pytree.tree_leaves(value)))


def detached(value: object) -> object:
    """A value whose tensors are in no graph."""
    found: object = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, value)
    return found


def with_type(value: T, dtype: torch.dtype) -> T:
    """A value whose tensors of floating point are of a type."""
    found: T = pytree.tree_map_only(
        torch.Tensor, lambda each: each.to(dtype) if each.is_floating_point() else each, value
    )
    return found
