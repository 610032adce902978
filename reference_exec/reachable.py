"""Constants: the tensors that code can reach before anything runs, which a run may swap or write.

*Of modules*: beside parameters and buffers these are attributes, whatever containers and objects
they lie in, and what a user's own classes and the globals of their file hold.

*Of the executor*: what the modules of this package reach through their globals, classes, closures
and default values; and the files of functions that stand in its classes and come from elsewhere,
but not those of installed libraries that know no torch.

Most names of a module or a class are of code that leads nowhere: a function without a closure and
default values, whatever is imported. Which ones is remembered, and looked at again where a name has
another value than it had.

What code reaches by other ways (a module that it imports while it runs, an object that only a C++
extension keeps) is not found.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import is_
from pathlib import PurePath
from types import (
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TypeVar

import torch
from torch import nn

_DEPTH = 8  # an attribute of an object in a list of a dictionary, and some more
_LIBRARIES = ("torch", "bubbleproof", "builtins")  # nobody's model
_STANDARD = frozenset((*_LIBRARIES, *sys.stdlib_module_names))
_EXECUTOR = __name__.rpartition(".")[0]
_IMPORTERS = ("__spec__", "__loader__", "__builtins__")  # who imported a module: nothing of it
_INSTALLED = {"site-packages", "dist-packages"}
_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType, WrapperDescriptorType)
_KINDS = (torch.Tensor, torch.UntypedStorage)
Kind = TypeVar("Kind")
Reach = Callable[[Sequence[object]], Iterable[object]]


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
    return _tensors(_roots(modules), _reached)


def constants_of_executor() -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from the code of this package."""
    roots: list[object] = []
    named = [*sys.modules.items()]
    for module in [each for name, each in named if name.startswith(_EXECUTOR) and _is_ours(name)]:
        roots += _leading(module)
    return _tensors(roots, _of_code)


def _tensors(roots: Iterable[object], reached: Reach) -> list[torch.Tensor]:
    layer, seen = [*filter(gc.is_tracked, roots)], dict[int, object]({id(_KNOWN): _KNOWN})
    for _ in range(_DEPTH):
        new = dict(zip(map(id, layer), layer, strict=True))
        for known in new.keys() & seen.keys():
            del new[known]
        seen |= new
        layer = [*filter(gc.is_tracked, reached([*new.values()]))]
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


def _of_code(objects: Sequence[object]) -> list[object]:
    found: list[object] = []
    files: dict[int, dict[str, object]] = {}  # of functions from elsewhere, each once
    for function in _of_class(objects, FunctionType):
        module = function.__module__
        if module == "typing":  # whose caches know every class that anybody has subscripted
            continue
        found += function.__closure__ or ()
        found += function.__defaults__ or ()
        found += (function.__kwdefaults__ or {}).values()
        if _is_foreign(module):
            files[id(function.__globals__)] = function.__globals__
    for kind in _of_class(objects, type):
        if _is_ours(kind.__module__):
            found += _leading(kind)
        elif not _is_library(kind.__module__):
            found += vars(kind).values()
    for names in files.values():
        found += (value for name, value in names.items() if name not in _IMPORTERS)
    return found + gc.get_referents(*_plain(objects))


def _plain(objects: Sequence[object]) -> list[object]:
    """What is no code: neither functions nor classes nor modules."""
    code = {k for k in {*map(type, objects)} if issubclass(k, (FunctionType, ModuleType, type))}
    return [each for each in objects if type(each) not in code]


class _Names:
    """Which names of a module or a class have values that lead nowhere, and which others it has."""

    __slots__ = ("_idle", "_values", "names")

    def __init__(self, names: Mapping[str, object]) -> None:
        idle = {n: v for n, v in names.items() if n in _IMPORTERS or _leads_nowhere(v)}
        self._idle, self._values = (*idle,), (*idle.values(),)
        self.names = tuple(name for name in names if name not in idle)

    def leading(self, names: Mapping[str, object]) -> list[object] | None:
        """The values that lead somewhere; None where the names are others or have other values."""
        if len(names) != len(self._idle) + len(self.names):
            return None
        value_of = names.__getitem__
        try:
            if all(map(is_, self._values, map(value_of, self._idle))):
                return [*map(value_of, self.names)]
        except KeyError:
            pass
        return None


_KNOWN: dict[int, _Names] = {}  # by who has them; another one in its place has other values


def _leading(owner: ModuleType | type) -> list[object]:
    """The values of a module or a class that lead somewhere."""
    names = vars(owner)
    known = _KNOWN.get(id(owner))
    if known is None or (found := known.leading(names)) is None:
        known = _KNOWN[id(owner)] = _Names(names)
        found = [names[name] for name in known.names]
    return found


def _leads_nowhere(value: object) -> bool:
    if isinstance(value, FunctionType):
        holds = value.__closure__ or value.__defaults__ or value.__kwdefaults__
        return not (holds or _is_foreign(value.__module__))
    if isinstance(value, type):
        return _is_library(value.__module__)
    if isinstance(value, (ModuleType, *_DESCRIPTORS)):
        return True
    return not (isinstance(value, dict) or gc.is_tracked(value))  # a dictionary may be to come


@cache
def _is_ours(module: str | None) -> bool:
    return module is not None and f"{module}.".startswith(f"{_EXECUTOR}.")


@cache
def _is_library(module: str | None) -> bool:
    """Whether a module is nobody's fault.

    Python's own, torch, another room of this package, or of a library that knows no torch.
    """
    top = (module or "builtins").partition(".")[0]
    return not _is_ours(module) and (top in _STANDARD or _is_without_torch(top))


@cache
def _is_without_torch(package: str) -> bool:
    """Whether a package is installed and none of its modules that are loaded knows torch."""
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None or not _INSTALLED & {*PurePath(file).parts}:
        return False
    own = [name for name in [*sys.modules] if f"{name}.".startswith(f"{package}.")]
    return not any("torch" in getattr(sys.modules[name], "__dict__", ()) for name in own)


@cache
def _is_foreign(module: str | None) -> bool:
    return not (_is_ours(module) or _is_library(module))
