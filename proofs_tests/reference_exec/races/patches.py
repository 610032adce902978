"""What torch does below or beside its dispatcher, told to a recorder while it records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any  # methods of torch's, of any type

import torch

from proofs_tests.reference_exec.races.machine import CudaStream
from proofs_tests.reference_exec.races.memory import Place

if TYPE_CHECKING:
    from proofs_tests.reference_exec.races.recorder import Recorder


@contextmanager
def beside_the_dispatcher(recorder: Recorder) -> Iterator[None]:
    """Put the methods of ``_Methods`` in the place of torch's."""
    ours = _Methods(recorder)
    owners = dict.fromkeys(("cpu", "tolist", "numpy", "record_stream"), torch.Tensor)
    owners["resize_"] = torch.UntypedStorage  # type: ignore[assignment]  # another class
    inherited = [name for name, owner in owners.items() if name not in vars(owner)]
    right = {name: getattr(owner, name) for name, owner in owners.items()}
    ours.right = right
    for name, owner in owners.items():
        setattr(owner, name, _method(getattr(ours, name)))
    try:
        yield
    finally:
        for name, owner in owners.items():
            if name in inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, right[name])


@contextmanager
def paused(recorder: Recorder) -> Iterator[None]:
    """Operations that belong to a stand-in are not recorded."""
    outer, recorder.is_paused = recorder.is_paused, True
    try:
        yield
    finally:
        recorder.is_paused = outer


def _method(function: Any) -> Any:
    """A function of its own, which a class binds; what is bound already a class does not."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


class _Methods:
    """Methods of tensors and storages that say what they do; ``right`` are torch's own."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.right: dict[str, Any] = {}

    def cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        recorder = self._recorder
        if recorder.is_paused or recorder.life_of(tensor).place is not Place.DEVICE:
            found: torch.Tensor = self.right["cpu"](tensor)
            return found
        recorder.host_reads("cpu", tensor)
        with paused(recorder):
            copy = tensor.detach().clone()
        recorder.place(copy, Place.PAGEABLE, "cpu")
        return copy

    def tolist(self, tensor: torch.Tensor) -> Any:
        self._recorder.host_reads("tolist", tensor)
        return self.right["tolist"](tensor)

    def numpy(self, tensor: torch.Tensor, **kwargs: bool) -> Any:
        if self._recorder.life_of(tensor).place is Place.DEVICE:
            raise TypeError("can't convert a device tensor to numpy")
        self._recorder.host_reads("numpy", tensor)
        return self.right["numpy"](tensor, **kwargs)

    def record_stream(self, tensor: torch.Tensor, stream: CudaStream) -> None:
        self._recorder.life_of(tensor).recorded.add(stream)

    def resize_(self, storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        self._recorder.resized(storage, size)
        found: torch.UntypedStorage = self.right["resize_"](storage, size)
        return found
