"""Constants of modules: the tensors that they reach beside parameters and buffers.

These are attributes, whatever containers and objects they lie in, and what a user's own classes and
the globals of their file hold. What code reaches by other ways (a module that it imports while it
runs, an object that only a C++ extension keeps) is not found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import (
    FunctionType,
    ModuleType,
)
from typing import TypeVar

import torch
from torch import nn

_DEPTH = 8  # an attribute of an object in a list of a dictionary, and some more
_LIBRARIES = ("torch", "bubbleproof", "builtins")  # nobody's model
_KINDS = (torch.Tensor, torch.UntypedStorage)
Kind = TypeVar("Kind")


def storages_of(objects: Iterable[object]) -> Iterator[torch.UntypedStorage]:
    """Those of the tensors and storages among the objects.

    Sparse tensors have none, nor have parameters without a shape, which torch tells by another
    error each.
    """
    for each in _of_class(list(objects), _KINDS):
        if isinstance(each, torch.UntypedStorage):
            yield each
        elif isinstance(each, torch.Tensor):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                yield each.untyped_storage()


def _of_class(objects: Sequence[object], base: type[Kind] | tuple[type[Kind], ...]) -> list[Kind]:
    """The instances of classes. To ask a hundred thousand would take long; their types are few."""
    kinds = {kind for kind in {*map(type, objects)} if issubclass(kind, base)}
    return [each for each in objects if type(each) in kinds]  # type: ignore[misc]  # of ``base``


def constants_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from modules, each once."""
    return _tensors(_roots(modules))


def _tensors(roots: Iterable[object]) -> list[torch.Tensor]:
    layer, seen = [*filter(gc.is_tracked, roots)], dict[int, object]()
    for _ in range(_DEPTH):
        new = dict(zip(map(id, layer), layer, strict=True))
        for known in new.keys() & seen.keys():
            del new[known]
        seen |= new
        layer = [*filter(gc.is_tracked, _reached([*new.values()]))]
    tensors = _of_class([*seen.values()], torch.Tensor)
    return [tensor for tensor in tensors if [*storages_of([tensor])]]


def _roots(modules: Iterable[nn.Module]) -> Iterator[object]:
    for part in {part: None for module in modules for part in module.modules()}:
        yield part
        for kind in type(part).__mro__:
            if kind.__module__.partition(".")[0] not in _LIBRARIES:
                yield from vars(kind).values()
                yield from getattr(kind.__dict__.get("forward"), "__globals__", {}).values()


def _reached(objects: Sequence[object]) -> list[object]:
    found: list[object] = []
    for each in _of_class(objects, FunctionType):  # without its globals, which are a whole file
        found += (*(each.__closure__ or ()), *(each.__defaults__ or ()))
    return found + gc.get_referents(*_plain(objects))


def _plain(objects: Sequence[object]) -> list[object]:
    """What is no code: neither functions nor classes nor modules."""
    code = {k for k in {*map(type, objects)} if issubclass(k, (FunctionType, ModuleType, type))}
    return [each for each in objects if type(each) not in code]
