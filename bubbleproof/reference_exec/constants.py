"""The tensors that modules have before anything runs: those that a run may swap or let grow.

Beside parameters and buffers these are attributes, whatever containers and objects they lie in,
and what a user's own classes and the globals of their file hold.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType

import torch
from torch import nn

_DEPTH = 8  # an attribute of an object in a list of a dictionary, and some more
_LIBRARIES = ("torch", "bubbleproof", "builtins")  # nobody's model


def constants_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from modules, each once."""
    layer: list[object] = [*_roots(modules)]
    seen: dict[int, object] = {}
    for _ in range(_DEPTH):
        new = {id(each): each for each in layer if id(each) not in seen}
        seen |= new
        layer = [other for each in new.values() for other in _reached(each)]
    return [t for t in seen.values() if isinstance(t, torch.Tensor) and _has_storage(t)]


def _roots(modules: Iterable[nn.Module]) -> Iterator[object]:
    for part in {part: None for module in modules for part in module.modules()}:
        yield part
        for kind in type(part).__mro__:
            if kind.__module__.partition(".")[0] not in _LIBRARIES:
                yield from vars(kind).values()
                yield from getattr(kind.__dict__.get("forward"), "__globals__", {}).values()


def _reached(each: object) -> list[object]:
    if isinstance(each, FunctionType):  # without its globals, which are a whole file
        return [*(each.__closure__ or ()), *(each.__defaults__ or ())]
    if isinstance(each, ModuleType | type):
        return []
    return gc.get_referents(each)


def _has_storage(tensor: torch.Tensor) -> bool:
    try:
        tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return False
    return True
