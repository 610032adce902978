"""Memory under the rules of torch's caching allocators: what may be touched when, and by whom.

A *life* is the time from which a storage has memory until it has none (freed, or resized to
nothing). Two accesses of the same bytes in one life, of which one writes, must be ordered. (The
bytes of a view are taken to be all from its first to its last.) Between lives:

- Device memory goes back to the stream it was allocated on, at once, as soon as the host frees it;
  the allocator takes its stream's own order for granted. So an access in a new life must come after
  every access in any life that was freed to the same stream before, unless that life was recorded
  (``record_stream``) for a stream which, at the time of the free, had all such accesses behind it.
  Which block a new life gets depends on sizes; here it may be any.
  (c10/cuda/CUDACachingAllocator.cpp; "Memory management" in torch's CUDA semantics.)
- Pinned host memory of torch is not given out again while a non-blocking copy that torch queued
  still uses it (CachingHostAllocator records an event per copy): freeing is no race, but writing or
  reading on the host is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from proofs_tests.reference_exec.races.timelines import Access, Clock, Timeline


class Place(StrEnum):
    """Where memory lies."""

    DEVICE = "device"
    PINNED = "pinned host"
    PAGEABLE = "host"


@dataclass(frozen=True, slots=True)
class Race:
    """Two operations on one memory that nothing orders.

    ``is_reuse`` where the first belongs to an earlier life of memory that the second may be using.
    """

    first: Access
    second: Access
    memory: str
    is_reuse: bool

    def __str__(self) -> str:
        how = "memory of an earlier life is given out again" if self.is_reuse else "race"
        return f"{how}: {self.first} and {self.second} on {self.memory}"


Bytes = tuple[int, int]  # from, to
Accesses = dict[tuple[Timeline, Bytes], Access]  # the last of these bytes on each timeline
ALL: Bytes = (0, 1 << 62)


class Pool:
    """The device memory that one stream's allocations come from: who may still use it."""

    def __init__(self) -> None:
        self.users: Accesses = {}

    def take_back(self, life: Life) -> None:
        """Add what a life's end leaves open: all accesses but those that its records await."""
        for access in (*life.writes.values(), *life.reads.values()):
            if not any(access.is_before(stream.clock) for stream in life.recorded):
                _note(self.users, access, ALL)


@dataclass(slots=True, eq=False)
class Life:
    """One stretch of a storage with memory; ``pool`` is where the memory goes when it ends."""

    name: str
    place: Place
    pool: Pool | None = None
    recorded: set[Timeline] = field(default_factory=set)
    writes: Accesses = field(default_factory=dict)
    reads: Accesses = field(default_factory=dict)
    earlier: Accesses = field(init=False)

    def __post_init__(self) -> None:
        self.earlier = {} if self.pool is None else dict(self.pool.users)

    def read(self, access: Access, clock: Clock, part: Bytes) -> list[Race]:
        """The races of a read of some bytes by whoever has ``clock``."""
        found = self._races(access, clock, _of(part, self.writes))
        _note(self.reads, access, part)
        return found

    def write(self, access: Access, clock: Clock, part: Bytes) -> list[Race]:
        """The races of a write."""
        found = self._races(access, clock, [*_of(part, self.writes), *_of(part, self.reads)])
        _note(self.writes, access, part)
        return found

    def end(self) -> None:
        """The memory is freed."""
        if self.pool is not None:
            self.pool.take_back(self)

    def _races(self, access: Access, clock: Clock, own: Iterable[Access]) -> list[Race]:
        where = f"{self.name} ({self.place})"
        found = [Race(other, access, where, False) for other in own if not other.is_before(clock)]
        others = self.earlier.values()
        return found + [Race(o, access, where, True) for o in others if not o.is_before(clock)]


def _of(part: Bytes, accesses: Accesses) -> list[Access]:
    """The accesses of any of these bytes."""
    begin, end = part
    return [access for (_, (b, e)), access in accesses.items() if b < end and begin < e]


def _note(accesses: Accesses, access: Access, part: Bytes) -> None:
    key = (access.timeline, part)
    if key not in accesses or accesses[key].number < access.number:
        accesses[key] = access
