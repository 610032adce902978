"""Floating-point operations, counted by the formulas of torch's FLOP counter, at little cost.

``torch.utils.flop_counter`` has a formula for each operation that it knows: matrix products,
convolutions, attention. Its own mode shows Python every operation there is, which takes a small
replay as long again. Here only operations with a formula come to Python: each has a kernel under a
dispatch key that no tensor has, and that a thread takes up while it counts (autograd's threads take
it over from the one that starts a backward). The kernel runs the operation itself and adds what its
formula says. While nobody counts nothing is different.

Where this torch does not have the key, a ``TorchDispatchMode`` counts the same and takes longer.
Neither knows flex attention nor kernels of Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from typing import Any, Self  # an operation takes whatever it takes

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_KEY = "TESTING_ONLY_GenericMode"  # torch has it for kernels of which it knows nothing
TorchOperation = torch._ops.OpOverload
Counting = Callable[[], AbstractContextManager[object]]


class _Tally:
    """What has been counted in this process."""

    def __init__(self) -> None:
        self.flops = 0
        self._known: dict[tuple[object, ...], int] = {}  # by operation and shapes

    def add(
        self, operation: TorchOperation, args: tuple[Any, ...], kwargs: Any, out: object
    ) -> None:
        """Add one call of an operation that has a formula."""
        shapes = tuple([each.shape for each in args if isinstance(each, torch.Tensor)])
        formula = flop_registry[operation.overloadpacket]
        if len(shapes) < len(args):  # it has options too
            self.flops += formula(*args, **kwargs, out_val=out)
            return
        key = (operation, shapes)
        if key not in self._known:
            self._known[key] = formula(*args, **kwargs, out_val=out)
        self.flops += self._known[key]


_TALLY = _Tally()


class FlopCount:
    """The operations that ran while this was entered, which it may be any number of times."""

    def __init__(self) -> None:
        self._flops, self._begun = 0, 0
        self._context, self._is_entered = ExitStack(), False

    @property
    def flops(self) -> int:
        """Those so far, also while it is entered."""
        return self._flops + (_TALLY.flops - self._begun if self._is_entered else 0)

    def __enter__(self) -> Self:
        self._context.enter_context(_counting()())
        self._begun, self._is_entered = _TALLY.flops, True
        return self

    def __exit__(self, *error: object) -> None:
        self._flops, self._is_entered = self.flops, False
        self._context.close()


def prepare() -> None:
    """Make what counting needs now, and not when a process first counts."""
    _counting()


@cache
def _counting() -> Counting:
    """What makes a context in which the tally counts, on this torch."""
    try:
        return _by_kernels()
    except (AttributeError, RuntimeError, NotImplementedError):
        return _EveryOperation


def _by_kernels() -> Counting:
    """Kernels for the operations with a formula, and the context of those who want them."""
    key = torch._C._parse_dispatch_key(_KEY)
    if key is None:
        raise AttributeError(_KEY)
    others = _library("_")
    others.fallback(torch.library.fallthrough_kernel)  # type: ignore[no-untyped-call]  # torch's stub
    known = _library("aten")
    for packet in flop_registry:
        if isinstance(packet, torch._ops.OpOverloadPacket):
            for name in packet.overloads():  # type: ignore[no-untyped-call]  # torch's stub
                operation = getattr(packet, name)
                kernel = _kernel(operation, torch._C.DispatchKeySet(key))
                known.impl(operation, kernel)  # type: ignore[no-untyped-call]  # torch's stub
    return lambda: torch._C._IncludeDispatchKeyGuard(key)


def _library(of: str) -> torch.library.Library:
    """A library for kernels under the key, which stays: one that dies takes its kernels along."""
    made = torch.library.Library(of, "IMPL", _KEY)  # type: ignore[no-untyped-call]  # torch's stub
    _KEPT.append(made)
    return made


_KEPT: list[torch.library.Library] = []


def _kernel(operation: TorchOperation, own: torch._C.DispatchKeySet) -> Callable[..., object]:
    """The operation itself, and its count."""

    def counted(*args: Any, **kwargs: Any) -> object:
        with torch._C._ExcludeDispatchKeyGuard(own):
            out: object = operation(*args, **kwargs)
        _TALLY.add(operation, args, kwargs, out)
        return out

    return counted


class _EveryOperation(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's stub
    """Every operation that runs comes by here."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what it calls is nothing to compile, and dynamo takes seconds to load

    def __torch_dispatch__(
        self, func: TorchOperation, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> object:
        del types
        given = kwargs or {}
        if func.overloadpacket not in flop_registry:  # it may consist of others that are
            with self:
                inner: object = func.decompose(*args, **given)
            return func(*args, **given) if inner is NotImplemented else inner
        before = _TALLY.flops
        out: object = func(*args, **given)
        if _TALLY.flops == before:  # no other of these saw it
            _TALLY.add(func, args, given, out)
        return out
