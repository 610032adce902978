"""Constants: the tensors that code can reach before anything runs, which a run may swap or write.

*Of modules*: beside parameters and buffers these are attributes, whatever containers and objects
they lie in, and what a user's own classes and the globals of their file hold.

*Of the executor*: what the modules of this package reach through their globals, classes, closures
and default values; and the files of functions that stand in its classes and come from elsewhere.

What code reaches by other ways (a module that it imports while it runs, an object that only a C++
extension keeps) is not found.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from types import FunctionType, ModuleType

import torch
from torch import nn

_DEPTH = 8  # an attribute of an object in a list of a dictionary, and some more
_LIBRARIES = ("torch", "bubbleproof", "builtins")  # nobody's model
_STANDARD = frozenset((*_LIBRARIES, *sys.stdlib_module_names))
_EXECUTOR = __name__.rpartition(".")[0]
_IMPORTERS = ("__spec__", "__loader__", "__builtins__")  # who imported a module: nothing of it
_KINDS = (torch.Tensor, torch.UntypedStorage)
Reach = Callable[[Iterable[object]], Iterable[object]]


def storages_of(objects: Iterable[object]) -> Iterator[torch.UntypedStorage]:
    """Those of the tensors and storages among the objects.

    Sparse tensors have none, nor have parameters without a shape, which torch tells by another
    error each.
    """
    listed = list(objects)
    # isinstance asks each of a hundred thousand objects for its class; kinds are few
    kinds = {kind for kind in {*map(type, listed)} if issubclass(kind, _KINDS)}
    for each in [each for each in listed if type(each) in kinds]:
        if isinstance(each, torch.UntypedStorage):
            yield each
        elif isinstance(each, torch.Tensor):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                yield each.untyped_storage()


def constants_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from modules, each once."""
    return _tensors(_roots(modules), _reached)


def constants_of_executor() -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from the code of this package."""
    modules = [vars(module) for name, module in [*sys.modules.items()] if _is_ours(name)]
    roots = (value for names in modules for name, value in names.items() if name not in _IMPORTERS)
    return _tensors(roots, _of_code)


def _tensors(roots: Iterable[object], reached: Reach) -> list[torch.Tensor]:
    layer, seen = list(roots), dict[int, object]()
    for _ in range(_DEPTH):
        new = {id(each): each for each in layer if id(each) not in seen}
        seen |= new
        layer = [each for each in reached(new.values()) if gc.is_tracked(each)]
    kinds = {kind for kind in {*map(type, seen.values())} if issubclass(kind, torch.Tensor)}
    tensors = [each for each in seen.values() if type(each) in kinds]
    return [each for each in tensors if isinstance(each, torch.Tensor) and [*storages_of([each])]]


def _roots(modules: Iterable[nn.Module]) -> Iterator[object]:
    for part in {part: None for module in modules for part in module.modules()}:
        yield part
        for kind in type(part).__mro__:
            if kind.__module__.partition(".")[0] not in _LIBRARIES:
                yield from vars(kind).values()
                yield from getattr(kind.__dict__.get("forward"), "__globals__", {}).values()


def _reached(objects: Iterable[object]) -> Iterable[object]:
    plain = []
    for each in objects:
        if isinstance(each, FunctionType):  # without its globals, which are a whole file
            yield from (*(each.__closure__ or ()), *(each.__defaults__ or ()))
        elif not isinstance(each, ModuleType | type):
            plain.append(each)
    yield from gc.get_referents(*plain)


def _of_code(objects: Iterable[object]) -> Iterable[object]:
    plain = []
    for each in objects:
        if isinstance(each, FunctionType):
            yield from _of_function(each)
        elif isinstance(each, type):
            yield from () if _is_library(each.__module__) else vars(each).values()
        elif not isinstance(each, ModuleType):
            plain.append(each)
    yield from gc.get_referents(*plain)


def _of_function(each: FunctionType) -> Iterator[object]:
    if each.__module__ == "typing":  # whose caches know every class that anybody has subscripted
        return
    yield from each.__closure__ or ()
    yield from each.__defaults__ or ()
    yield from (each.__kwdefaults__ or {}).values()
    if not (_is_ours(each.__module__) or _is_library(each.__module__)):
        yield from each.__globals__.values()


@cache
def _is_ours(module: str | None) -> bool:
    return module is not None and f"{module}.".startswith(f"{_EXECUTOR}.")


@cache
def _is_library(module: str | None) -> bool:
    """Whether a module is nobody's fault: Python's own, torch, or another room of this package."""
    top = (module or "builtins").partition(".")[0]
    return top in _STANDARD and not _is_ours(module)
