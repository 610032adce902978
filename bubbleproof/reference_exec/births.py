"""Which tensors there are: those that an action made, and those that modules have before it.

*Births* are what an action made and what lives on after it, whoever keeps it. Python's garbage
collector knows every tensor that a Python object shows, those that autograd was given to keep
included. What is young to it was made since it last looked, so to look at the young before each of
its collections, and to have it collect at each action boundary, is to see all that an action leaves
behind. That costs some microseconds, where a look at each operation (``TorchDispatchMode``) would
cost as much as small operations do.

What ``gc.freeze`` hides from the collector, and what is collected without that this is told of it,
cannot be seen so. An empty list that is put among the young is missing from them then, which is an
error.

A storage that no Python object shows and no graph has told of, as C++ extensions may keep, is not
found. Of a tensor without a storage (sparse ones) there is nothing to follow.

*Constants* are the tensors that modules have before anything runs, which a run may swap or let
grow. Beside parameters and buffers these are attributes, whatever containers and objects they lie
in, and what a user's own classes and the globals of their file hold.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Ledger

_KINDS = (torch.Tensor, torch.UntypedStorage)
_DEPTH = 8  # an attribute of an object in a list of a dictionary, and some more
_LIBRARIES = ("torch", "bubbleproof", "builtins")  # nobody's model


class Births:
    """What was made since the last action boundary of this process, on whichever rank."""

    def __init__(self) -> None:
        self._watchers = 0
        self._early: dict[int, StorageWeakRef] = {}  # seen before a collection within an action
        self._is_looking = False
        self._is_hidden = False  # as the collection began that runs
        self._witness: list[object] | None = None  # young, unless something hides the young

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A context in which nothing young escapes a look."""
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

    def forget(self) -> None:
        """What has been made so far is nobody's to follow."""
        self._collect()
        self._early.clear()

    def leave_to(self, ledger: Ledger) -> None:
        """Let a ledger follow what was made since the last call and still lives.

        Raises ``BrokenProgram`` where that cannot be known.
        """
        young, is_hidden = self._look()
        if is_hidden:
            raise BrokenProgram(
                "gc.freeze() or the like hid what was made from Python's collector, so that its "
                "bytes cannot be counted; leave that call out, or count no bytes"
            )
        ledger.find(young)
        if self._early:
            for ref in self._early.values():
                storage = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
                if storage is not None:
                    ledger.find([storage])
            self._early.clear()
        self._collect()

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
        return [*_storages(objects)], is_hidden

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


def living_storages() -> list[torch.UntypedStorage]:
    """Those of all tensors of this process."""
    return [*_storages(gc.get_objects())]


def _storages(objects: Iterable[object]) -> Iterator[torch.UntypedStorage]:
    for each in [each for each in objects if issubclass(type(each), _KINDS)]:
        if isinstance(each, torch.UntypedStorage):
            yield each
        elif isinstance(each, torch.Tensor):
            with suppress(NotImplementedError, RuntimeError):  # it has none
                yield each.untyped_storage()


def constants_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """All tensors with a storage that can be reached from modules, each once."""
    layer: list[object] = [*_roots(modules)]
    seen: dict[int, object] = {}
    for _ in range(_DEPTH):
        new = {id(each): each for each in layer if id(each) not in seen}
        seen |= new
        layer = [other for each in new.values() for other in _reached(each)]
    tensors = (each for each in seen.values() if isinstance(each, torch.Tensor))
    return [tensor for tensor in tensors if any(_storages([tensor]))]


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
