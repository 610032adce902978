"""Shards: cases of many claims for one call of a worker, and what becomes of them there.

A shard holds cases of some readings of one paper's claims. It travels to another process, so it
names claims by id, readings by name and cases by numbers (readings hold functions, which do not
travel). ``decide_shard`` is what a
worker does; it looks claims up by the shard's ``library``, a function that is imported by name.

Shards come in two kinds. A *head* holds the smallest cases of one reading: most of those that fail
do so there, and are done. The *cells* hold the rest: all cases of a paper that agree in their first
two parameters (ranks and microbatches for schedules), so that claims that measure the same schedule
meet in one worker and its caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import Counterexample
from bubbleproof.papers.claims.domain import CaseTable
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.claims.standing import EvidenceKind, watched

Library = Callable[[], Mapping[str, PaperClaim]]
ReadingKey = tuple[str, str]  # the id of a claim and the name of one of its readings
HEAD = 96  # cases of a head, fewer where their schedules are large
LOAD = 30_000  # about how many actions the schedules of a shard have in sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slice:
    """Cases of one reading, smallest first: ``place[i]`` is where ``rows[i]`` is in the domain."""

    key: ReadingKey
    names: tuple[str, ...]
    rows: CaseTable
    place: np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shard:
    """Work for one call of a worker; ``load`` estimates it, in actions."""

    paper: str
    library: Library
    slices: tuple[Slice, ...]
    load: int

    @classmethod
    def of(cls, paper: str, library: Library, slices: Iterable[Slice]) -> Shard:
        """The shard with its load."""
        parts = tuple(slices)
        load = sum(int(loads(part).sum()) for part in parts)
        return cls(paper=paper, library=library, slices=parts, load=load)

    @property
    def claims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.key[0] for part in self.slices))

    @property
    def keys(self) -> tuple[ReadingKey, ...]:
        return tuple(dict.fromkeys(part.key for part in self.slices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failing case, at its place in the reading's domain."""

    place: int
    counterexample: Counterexample


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceOutcome:
    """What came of a slice: its first failing case, and the mutants that its cases refute.

    ``standing`` is that of the reading, told by the slice that holds the domain's first case.
    """

    key: ReadingKey
    failure: Failure | None
    refuted_mutants: frozenset[int]
    standing: EvidenceKind | None


def decide_shard(shard: Shard) -> tuple[SliceOutcome, ...]:
    """What came of every slice; an error names the claim and the case."""
    known = _known(shard.library)
    return tuple(
        _outcome(known[claim].reading(name), part)
        for part in shard.slices
        for claim, name in [part.key]
    )


@cache
def _known(library: Library) -> Mapping[str, PaperClaim]:
    return library()


def _outcome(reading: Reading, part: Slice) -> SliceOutcome:
    """Cases are decided in the order of their values, so that those of one shape stand together."""
    first: Failure | None = None
    refuted: frozenset[int] = frozenset()
    standing: EvidenceKind | None = None
    cases = sorted(zip(part.rows.tolist(), part.place.tolist(), strict=True))
    for row, place in cases:
        if first is not None and first.place < place:
            continue
        params = dict(zip(part.names, row, strict=True))
        try:
            if place == 0:
                standing = watched(reading.measured, params)
            predicted, measured = reading.values(params)
        except Exception as error:
            error.add_note(f"while measuring {part.key[0]} ({reading.name}) at {params}")
            raise
        if reading.accepts(predicted, measured):
            refuted |= reading.refuted_mutants(predicted, measured)
        else:
            case = Counterexample(params=params, predicted=predicted, measured=measured)
            first = Failure(place=place, counterexample=case)
    return SliceOutcome(key=part.key, failure=first, refuted_mutants=refuted, standing=standing)


def by_first_two(part: Slice) -> Iterator[tuple[tuple[int, ...], Slice]]:
    """The slice cut by the values of its first two parameters, each part in the same order."""
    if not len(part.rows):
        return
    keys, owner = np.unique(part.rows[:, :2], axis=0, return_inverse=True)
    order = np.argsort(owner.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(owner.ravel()))
    for key, rows in zip(keys.tolist(), np.split(order, ends[:-1]), strict=True):
        yield (
            tuple(key),
            Slice(key=part.key, names=part.names, rows=part.rows[rows], place=part.place[rows]),
        )


def loads(part: Slice) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Estimates: a case costs what p m v s actions cost, or little where it has no schedule."""
    sizes = [part.rows[:, part.names.index(name)] for name in "pmvs" if name in part.names]
    if "p" not in part.names or "m" not in part.names:
        return np.ones(len(part.rows), dtype=np.int64)
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = np.prod(np.maximum(sizes, 1), axis=0)
    return found


def packed(shards: Iterable[Shard]) -> Iterator[Shard]:
    """Neighbouring shards of one paper joined up to ``LOAD``, so that none is tiny."""
    waiting: list[Shard] = []
    for shard in shards:
        joined = sum(each.load for each in waiting) + shard.load
        if waiting and (joined > LOAD or shard.paper != waiting[0].paper):
            yield _joined(waiting)
            waiting = []
        waiting.append(shard)
    if waiting:
        yield _joined(waiting)


def _joined(shards: Sequence[Shard]) -> Shard:
    slices = (part for each in shards for part in each.slices)
    return Shard.of(shards[0].paper, shards[0].library, slices)
