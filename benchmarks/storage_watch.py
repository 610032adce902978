"""Every storage that a process makes while it is watched, and the bytes of those that still live.

A look at each operation as it is dispatched (``TorchDispatchMode``), backwards included, so that
who keeps a tensor does not matter: Python, autograd's nodes, a message under way. It serves whoever
runs a step, so that PyTorch's runtime and our ranks are measured alike. What an operation is given
that was not made in the context is old and does not count, nor do views of it; what gloo and the
allocator keep for themselves is not seen. The watch follows what is made on the thread that
entered it, which on a CPU runs the backwards too.

Garbage that only a circle of references keeps is collected before each reading.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from typing import Any  # arguments of operators, each of its own type

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bubbleproof.reference_exec.ledger import bytes_of

Apart = Callable[[], Iterable[torch.Tensor | None]]


class StorageWatch(TorchDispatchMode):
    """A context; ``live_bytes`` may be read in it and after it.

    ``apart`` gives tensors that do not count, asked at each reading: gradients of parameters.
    """

    def __init__(self, apart: Apart = tuple) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._apart = apart
        self._made: dict[int, StorageWeakRef] = {}  # while one is kept its key is nobody else's
        self._old: dict[int, StorageWeakRef] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        del types
        given = kwargs or {}
        for key, storage in _storages((args, given)):
            if key not in self._made and key not in self._old:
                self._old[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
        result = func(*args, **given)
        for key, storage in _storages(result):
            if key not in self._made and key not in self._old:
                self._made[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
        return result

    def live_bytes(self) -> int:
        """The bytes of all that was made in the context and lives, each storage once."""
        gc.collect()
        apart = {key for tensor in self._apart() for key, _ in _storages(tensor)}
        sizes = {key: bytes_of(ref) for key, ref in self._made.items()}
        self._made = {key: ref for key, ref in self._made.items() if sizes[key]}
        return sum(size for key, size in sizes.items() if key not in apart)


def _storages(tree: object) -> list[tuple[int, torch.UntypedStorage]]:
    found = []
    for leaf in tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
            storage = leaf.untyped_storage()
            found.append((storage._cdata, storage))
    return found
