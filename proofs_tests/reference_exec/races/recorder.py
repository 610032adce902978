"""The recorder: sees every operation of torch, what it reads and writes, and on which stream.

Below autograd each operation of torch passes here (``TorchDispatchMode``); what never gets there
(``cpu``, ``tolist``, ``record_stream``, a storage's ``resize_``) is replaced while recording. An
operation with device tensors runs on the current stream, one without on the host. Views touch no
memory; what allocates without writing (``empty``) only begins a life. Where memory lies follows
from the device that was asked for (``machine``) or else from what an operation was given.

Copies between host and device are those of torch (aten/src/ATen/native/cuda/Copy.cu): non-blocking
from or to pinned memory they are the stream's alone; all others keep the host waiting for the
stream. A backward runs each operation on the stream of its forward and the caller's current stream
waits for all of them at its end ("Stream semantics of backward passes" in torch's
CUDA semantics).
"""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self  # what torch dispatches has arguments of any type

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from proofs_tests.reference_exec.races.machine import PINNED_INDEX, CudaStream, Machine
from proofs_tests.reference_exec.races.memory import Bytes, Life, Place, Race
from proofs_tests.reference_exec.races.patches import beside_the_dispatcher
from proofs_tests.reference_exec.races.timelines import Access, Timeline

_ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_METADATA = {"set_", "detach_", "lift_fresh"}
_HOST_WAITS = {"_local_scalar_dense", "equal", "nonzero", "is_nonzero"}
_PLACES = {0: Place.DEVICE, PINNED_INDEX: Place.PINNED}
_ACCUMULATE = (1 << 64) - 1  # the sequence number of every AccumulateGrad


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's stub
    """The races of all that runs inside it; ``machine`` is the one whose host runs now."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's stub
        self.races: dict[tuple[str, str, bool], Race] = {}
        self.misplaced: list[str] = []  # operations on tensors of host and device together
        self.num_operations = 0
        self.is_paused = False
        self._lives: dict[int, Life] = {}
        self._switches: list[tuple[int, CudaStream]] = []  # (first sequence number, stream)
        self._backward: list[CudaStream] = []  # of the backward that runs, in their order
        self.machine = machine
        self.turn_to(machine)

    @property
    def doing(self) -> str:
        return self.machine.doing

    def turn_to(self, machine: Machine) -> None:
        """From here on another machine's host runs."""
        self.machine = machine
        machine.on_switch = self._switched
        self._switched()

    def __enter__(self) -> Self:
        self._patches = beside_the_dispatcher(self)
        self._patches.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]  # torch's stub
        return self

    def __exit__(self, *args: object) -> None:
        super().__exit__(*args)  # type: ignore[no-untyped-call]  # torch's stub
        self._patches.__exit__(None, None, None)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self.is_paused:
            self.num_operations += 1
            self._note(func, args, kwargs, result)
        return result

    def life_of(self, tensor: torch.Tensor) -> Life:
        """The life of a tensor's memory; memory that was made unseen is the host's."""
        storage = tensor.untyped_storage()
        found = self._lives.get(storage._cdata)
        return self._begin(storage, Place.PAGEABLE, "data") if found is None else found

    def touch(
        self,
        what: str,
        timeline: Timeline,
        *,
        reads: Iterable[torch.Tensor] = (),
        writes: Iterable[torch.Tensor] = (),
    ) -> None:
        """One operation of a timeline."""
        number = timeline.issue() if isinstance(timeline, CudaStream) else timeline.step()
        access = Access(timeline, number, f"{what} in {self.doing}")
        for tensor in reads:
            self._found(self.life_of(tensor).read(access, timeline.clock, _bytes(tensor)))
        for tensor in writes:
            self._found(self.life_of(tensor).write(access, timeline.clock, _bytes(tensor)))

    def host_reads(self, what: str, tensor: torch.Tensor) -> None:
        """The host waits for the current stream, to which a read was given, and has the value."""
        if self.life_of(tensor).place is Place.DEVICE:
            stream = self._stream()
            self.touch(what, stream, reads=[tensor])
            stream.synchronize()
        else:
            self.touch(what, self.machine.host, reads=[tensor])

    def resized(self, storage: torch.UntypedStorage, size: int) -> None:
        """A storage gets memory of another size, or none."""
        life = self._lives.get(storage._cdata)
        if life is None or life.place is not Place.DEVICE:
            return
        life.end()
        self._lives[storage._cdata] = Life("freed", Place.DEVICE)
        if size:
            self._begin(storage, Place.DEVICE, "resize_")

    def place(self, tensor: torch.Tensor, place: Place, name: str) -> None:
        """A tensor just made is memory of that place."""
        self._begin(tensor.untyped_storage(), place, name)

    def _begin(self, storage: torch.UntypedStorage, place: Place, name: str) -> Life:
        key = storage._cdata
        if key not in self._lives:
            weakref.finalize(storage, self._end, key).atexit = False
        pool = self._stream().pool if place is Place.DEVICE else None
        life = self._lives[key] = Life(f"{name} of {self.doing}", place, pool)
        return life

    def _end(self, key: int) -> None:
        self._lives.pop(key).end()

    def _found(self, races: list[Race]) -> None:
        for race in races:
            self.races.setdefault((race.first.what, race.second.what, race.is_reuse), race)

    def _switched(self) -> None:
        self._switches.append((torch._C._autograd._get_sequence_nr(), self.machine.current))

    def _stream(self) -> CudaStream:
        """The stream of an operation that is dispatched now."""
        node = torch._C._current_autograd_node()
        if node is None:
            if self._backward:
                for used in self._backward:
                    self.machine.current.wait_stream(used)
                self._backward.clear()
            return self.machine.current
        if not self._backward:
            self._backward.append(self.machine.current)
        last, number = self._backward[-1], node._sequence_nr()
        if number == _ACCUMULATE:
            return last
        row = bisect.bisect_right(self._switches, number, key=lambda switch: switch[0]) - 1
        stream = self._switches[row][1]
        if stream is not last:
            stream.wait_stream(last)
            self._backward.append(stream)
        return stream

    def _note(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        name = func._schema.name.removeprefix("aten::")
        given = _tensors((args, kwargs))
        new = [t for t in _tensors(result) if not any(_share(t, other) for other in given)]
        written = _written(func, args, kwargs)
        if name in _METADATA or not (new or written or name in _HOST_WAITS):
            return
        if name in ("copy_", "_to_copy"):
            self._copy(name, args, kwargs, result)
            return
        places = {self.life_of(t).place for t in given if t.dim()}
        if Place.DEVICE in places and len(places) > 1:
            self.misplaced.append(f"{name} in {self.doing} on {', '.join(sorted(places))}")
        device = kwargs.get("device")
        if device is None or _is_torchs_own(torch._C._current_autograd_node()):
            place = _common(places, given, self)
        else:
            place = _place(device)
        for tensor in new:
            self.place(tensor, place, name)
        if name in _ALLOCATE and not _is_new_memory_filled():
            return
        is_on_device = Place.DEVICE in (places | {place} if new else places)
        timeline = self._stream() if is_on_device else self.machine.host
        takes_shape_alone = name in _ALLOCATE or name.endswith("_like") or name.startswith("new_")
        reads = [] if takes_shape_alone else given
        self.touch(name, timeline, reads=reads, writes=[*new, *written])
        if name in _HOST_WAITS and isinstance(timeline, CudaStream):
            timeline.synchronize()

    def _copy(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor
    ) -> None:
        if name == "copy_":
            target, source = args[:2]
            non_blocking = bool(kwargs.get("non_blocking", args[2] if len(args) > 2 else False))
        else:
            target, source = result, args[0]
            non_blocking = bool(kwargs.get("non_blocking", False))
            device = kwargs.get("device")
            place = self.life_of(source).place if device is None else _place(device)
            self.place(target, place, "copy")
        places = self.life_of(source).place, self.life_of(target).place
        if Place.DEVICE not in places:
            self.touch(name, self.machine.host, reads=[source], writes=[target])
            return
        stream = self._stream()
        self.touch(name, stream, reads=[source], writes=[target])
        is_across = places != (Place.DEVICE, Place.DEVICE)
        if is_across and not (non_blocking and Place.PINNED in places):
            stream.synchronize()


def _is_new_memory_filled() -> bool:
    """Whether torch writes to all memory that it allocates (``use_deterministic_algorithms``)."""
    fills: bool = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]  # no stub
    return fills and torch.are_deterministic_algorithms_enabled()


def _is_torchs_own(node: object) -> bool:
    """Whether an operation is of a backward of torch's, which allocates where its gradient is."""
    return node is not None and not isinstance(node, torch.autograd.function.BackwardCFunction)


def _place(device: torch.device) -> Place:
    return _PLACES.get(-1 if device.index is None else device.index, Place.PAGEABLE)


def _common(places: set[Place], given: Sequence[torch.Tensor], recorder: Recorder) -> Place:
    """Where the outcome of an operation lies: on the device where anything given does.

    Given nothing it is part of a backward, which is of tensors on the device.
    """
    everything = places or {recorder.life_of(t).place for t in given} or {Place.DEVICE}
    return Place.DEVICE if Place.DEVICE in everything else Place.PAGEABLE


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in _tensors(item)]


def _bytes(tensor: torch.Tensor) -> Bytes:
    """From the first to the last byte of a view."""
    if not tensor.numel():
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    begin, size = int(tensor.storage_offset()), tensor.element_size()
    return begin * size, (begin + last + 1) * size


def _share(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(tensor.untyped_storage()._cdata == other.untyped_storage()._cdata)


@lru_cache(maxsize=1000)
def _written_names(func: Any) -> tuple[tuple[int, str], ...]:
    return tuple(
        (position, argument.name)
        for position, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operation writes to."""
    values = [
        args[position] if position < len(args) else kwargs.get(name)
        for position, name in _written_names(func)
    ]
    return _tensors(values)
