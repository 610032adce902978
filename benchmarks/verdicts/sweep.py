"""All verdicts by many workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.verdicts.generated import Generator
from benchmarks.verdicts.generator_list import generators
from benchmarks.verdicts.judged import Judged, judge
from bubbleproof.parallel import run_all

RANKS = (2, 3, 4, 6, 8, 12, 16)
MOST_RANKS, MOST_MICROBATCHES = 16, 64
MOST_CELLS = 256  # of a schedule on the page
FEW = 4  # microbatches and ranks of the reduced grid
Advance = Callable[[Judged], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A generator at one size, as it travels to a worker."""

    source: str
    name: str
    p: int
    m: int
    archives: tuple[Path, ...] = ()

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.source, self.name, self.p, self.m


def grid(extent: str) -> Iterator[tuple[int, int]]:
    """(p, m): ``reduced``, the ``page``'s or ``every`` one. Raises ``ValueError`` for others.

    The page has m about the turns of a family and up to 64, of ``MOST_CELLS`` (p, m) cells at most.
    """
    if extent == "reduced":
        yield from ((p, m) for p in range(2, FEW + 1) for m in range(1, FEW + 1))
    elif extent == "page":
        for p in RANKS:
            for m in sorted({1, p - 1, p, p + 1, 2 * p, 4 * p, MOST_MICROBATCHES}):
                if p * m <= MOST_CELLS:
                    yield p, m
    elif extent == "every":
        for p in range(2, MOST_RANKS + 1):
            yield from ((p, m) for m in range(1, MOST_MICROBATCHES + 1))
    else:
        raise ValueError(f"the grid must be reduced, page or every, got {extent!r}")


def wanted(extent: str, archives: tuple[Path, ...], only: str = "") -> list[Wanted]:
    """Every generator at every size; those whose source and name hold ``only``."""
    named = [key for key in generators(archives) if only in " ".join(key)]
    return [
        Wanted(source=source, name=name, p=p, m=m, archives=archives)
        for p, m in grid(extent)
        for source, name in named
    ]


def decided(item: Wanted) -> Judged:
    """The verdict on one item; what a worker does."""
    found: Generator = generators(item.archives)[item.source, item.name]
    return judge(found, item.p, item.m)


def sweep(items: Sequence[Wanted], executor: Executor | None, advance: Advance) -> list[Judged]:
    """The verdict on each item, in their order; ``advance`` hears each as it is decided."""
    known: dict[tuple[str, str, int, int], Judged] = {}
    # what is small, and wrong at the smallest, first
    todo = sorted(items, key=lambda item: item.p * item.m)

    def hear(_index: int, found: Judged) -> None:
        known[found.source, found.name, found.p, found.m] = found
        advance(found)

    run_all(executor, decided, todo, on_done=hear)
    return [known[item.key] for item in items]
