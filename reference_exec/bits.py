"""Bits: whether two tensors are the same, and in words where two sets of them first are not.

The same are tensors of one shape and one type whose elements have the same bits: -0.0 is not 0.0,
and a NaN is the NaN of the same pattern and no other. (``torch.equal`` says the opposite of both.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

K = TypeVar("K")
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors have one shape, one type and the same bits."""
    alike = found.shape == expected.shape and found.dtype == expected.dtype
    return alike and torch.equal(_bits(found), _bits(expected))


def are_equal(found: Mapping[K, torch.Tensor], expected: Mapping[K, torch.Tensor]) -> bool:
    """Whether both hold the same tensors by the same keys, bit for bit."""
    return found.keys() == expected.keys() and all(
        same_bits(found[key], expected[key]) for key in expected
    )


def difference(
    found: Mapping[K, torch.Tensor],
    expected: Mapping[K, torch.Tensor],
    name: Callable[[K], str] = str,
) -> str:
    """The first of the expected tensors that differs, and how; empty where ``are_equal``.

    >>> difference({0: torch.tensor([0.0, 2.0])}, {0: torch.tensor([-0.0, 2.0])})
    '0 differs in 1 of 2 elements, first 0.0 for -0.0'
    >>> difference({}, {3: torch.ones(2)}, "microbatch {}".format)
    'microbatch 3 is missing'
    """
    for key, wanted in expected.items():
        if key not in found:
            return f"{name(key)} is missing"
        if not same_bits(found[key], wanted):
            return f"{name(key)} {_told(found[key], wanted)}"
    foreign = [key for key in found if key not in expected]
    return f"{name(foreign[0])} was not expected" if foreign else ""


def as_bytes(tensor: torch.Tensor) -> bytes:
    """The bits of a tensor on the host, of any type; NumPy has no bfloat16."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _told(found: torch.Tensor, expected: torch.Tensor) -> str:
    """How one tensor differs from what was expected."""
    if found.shape != expected.shape:
        return f"has the shape {tuple(found.shape)} for {tuple(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"is {_type(found)} for {_type(expected)}"
    off = (_bits(found) != _bits(expected)).reshape(-1)
    first = int(off.int().argmax())
    values = (tensor.reshape(-1)[first].item() for tensor in (found, expected))
    pair = " for ".join(map(repr, values))
    return f"differs in {int(off.sum())} of {off.numel()} elements, first {pair}"


def _type(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as integers of their width."""
    plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return plain.detach().contiguous().view(_INTEGERS[plain.element_size()])
