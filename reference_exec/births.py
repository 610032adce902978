"""Births: what an action, or the making of a rank, has made and what lives on after it.

Whoever keeps it: Python's garbage collector knows every tensor that a Python object shows, those
that autograd was given to keep included. What is young to it was made since it last looked, so to
look at the young before each of its collections, and to have it collect at each action boundary,
is to see all that an action leaves behind. That costs some microseconds, where a look at each
operation (``TorchDispatchMode``) would cost as much as small operations do.

What ``gc.freeze`` hides from the collector, and what is collected without that this is told of it,
cannot be seen so. An empty list that is put among the young is missing from them then, which is an
error.

A storage that no Python object shows and no graph has told of, as C++ extensions may keep, is not
found. Of a tensor without a storage (sparse ones) there is nothing to follow.

What is *old*, there before the first rank was made, is nobody's birth. An old tensor that is
written all the same may take what an action has made, so those that the code of a user's model can
reach (``constants_of``) are guarded: the action after which torch's count of a tensor's writes has
moved has written it, and one after which its data lie elsewhere has made it grow, or show something
else. (``.data`` and arrays of numpy write without being counted.)

Constants of modules: the tensors that they reach beside parameters and buffers.

These are attributes, whatever containers and objects they lie in, and what a user's own classes and
the globals of their file hold. What code reaches by other ways (a module that it imports while it
runs, an object that only a C++ extension keeps) is not found.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import (
    FunctionType,
    ModuleType,
)
from typing import TypeVar

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Ledger, bytes_of

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
            try:  # at every action, of all that is young: ``suppress`` takes as long again
                storage = each.untyped_storage()
            except (NotImplementedError, RuntimeError, ValueError):
                continue
            yield storage


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


class _Guarded:
    """An old tensor, which may die: the writes into it, and where its data lay when last looked."""

    __slots__ = ("_place", "_writes", "ref")

    def __init__(self, tensor: torch.Tensor) -> None:
        """Raises ``RuntimeError`` for an inference tensor, whose writes torch does not count."""
        self.ref = weakref.ref(tensor)
        self._writes, self._place = tensor._version, tensor.data_ptr()

    def has_changed(self) -> bool:
        """Whether it was written, has grown or shows something else since the last call."""
        tensor = self.ref()
        if tensor is None:
            return False
        before = self._writes, self._place
        self._writes, self._place = tensor._version, tensor.data_ptr()
        return before != (self._writes, self._place)


class Births:
    """What was made since the last action boundary of this process, on whichever rank."""

    def __init__(self) -> None:
        self._watchers = 0
        self._early: dict[int, StorageWeakRef] = {}  # seen before a collection within an action
        self._is_looking = False
        self._is_hidden = False  # as the collection began that runs
        self._witness: list[object] | None = None  # young, unless something hides the young
        self._guarded: dict[int, _Guarded] = {}  # by tensor
        self._old: dict[int, StorageWeakRef] = {}  # by key, once it was asked for

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A context in which nothing young escapes a look; what is there as it begins is old."""
        self._watchers += 1
        if self._watchers == 1:
            gc.callbacks.append(self._called)
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                gc.callbacks.remove(self._called)
                self._early.clear()
                self._witness = None
                self._guarded.clear()
                self._old.clear()

    def guard(self, tensors: Iterable[torch.Tensor]) -> None:
        """From now on notice what becomes of these, which are old."""
        for tensor in tensors:
            with suppress(RuntimeError):
                self._guarded.setdefault(id(tensor), _Guarded(tensor))

    def disregard(self, tensors: Iterable[torch.Tensor]) -> None:
        """Notice nothing of these."""
        for tensor in tensors:
            self._guarded.pop(id(tensor), None)

    def changed(self) -> list[torch.Tensor]:
        """The guarded tensors that have changed since the last call."""
        changed = [each.ref() for each in self._guarded.values() if each.has_changed()]
        return [tensor for tensor in changed if tensor is not None]

    def old(self) -> dict[int, StorageWeakRef]:
        """All storages that were there when this was first asked in the context."""
        if not self._old:
            found = {storage._cdata: storage for storage in living_storages()}
            self._old = {key: StorageWeakRef(storage) for key, storage in found.items()}  # type: ignore[no-untyped-call]  # torch's stub
        return self._old

    def forget(self) -> None:
        """What has been made so far is nobody's to follow."""
        self._collect()
        self._early.clear()

    def taken(self) -> list[torch.UntypedStorage]:
        """What was made since the last look and still lives.

        Raises ``BrokenProgram`` where that cannot be known.
        """
        young, is_hidden = self._look()
        if is_hidden:
            raise BrokenProgram(
                "gc.freeze() or the like hid what was made from Python's collector, so that its "
                "bytes cannot be counted; leave that call out, or count no bytes"
            )
        early = [torch.UntypedStorage._new_with_weak_ptr(r.cdata) for r in self._early.values()]
        self._early.clear()
        self._collect()
        return [*young, *(storage for storage in early if storage is not None)]

    def leave_to(self, ledger: Ledger) -> None:
        """Let a ledger follow what was made since the last call and still lives, or was written.

        Raises ``BrokenProgram`` as ``taken`` does.
        """
        ledger.find(self.taken())
        for tensor in self.changed():
            ledger.take(tensor.untyped_storage())

    def _collect(self) -> None:
        """Let nothing be young any more, but a new witness."""
        self._is_looking = True
        try:
            gc.collect(0)
        finally:
            self._is_looking = False
        self._witness = [] if self._watchers else None

    def _look(self) -> tuple[list[torch.UntypedStorage], bool]:
        """What is young, and whether something else is hidden."""
        objects = gc.get_objects(generation=0)
        witness = self._witness
        is_hidden = witness is not None and not any(each is witness for each in objects)
        return [*storages_of(objects)], is_hidden

    def _called(self, phase: str, info: dict[str, int]) -> None:
        """Look before a collection; a witness that was hidden until then stays so."""
        del info
        if self._is_looking:
            return
        if phase == "start":
            young, self._is_hidden = self._look()
            for storage in young:
                if storage._cdata not in self._early:
                    self._early[storage._cdata] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
        elif self._witness is not None and not self._is_hidden:
            self._witness = []


BIRTHS = Births()  # of this process, as its collector is


def settled_bytes(storages: list[torch.UntypedStorage]) -> dict[int, int]:
    """By key the bytes of those that live without circles of references; empties the list."""
    refs = {each._cdata: StorageWeakRef(each) for each in storages}  # type: ignore[no-untyped-call]  # torch's stub
    storages.clear()
    gc.collect()  # all of it: what a library builds with may be old by now
    found = {key: bytes_of(ref) for key, ref in refs.items()}
    return {key: size for key, size in found.items() if size}


def living_storages() -> list[torch.UntypedStorage]:
    """Those of all tensors of this process."""
    return [*storages_of(gc.get_objects())]
