"""All verdicts by many workers; what has been decided is kept, so that a sweep may be interrupted.

A kept file has a line of JSON for each generator and size, after a first line that says of which
version of the package and of which durations they are; lines of another are not taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.verdicts.generated import Generator
from benchmarks.verdicts.generator_list import generators
from benchmarks.verdicts.judged import Judged, Placed, judge
from bubbleproof.formats.files import write_text
from bubbleproof.parallel import run_all
from bubbleproof.version import package_version

RANKS = (2, 3, 4, 6, 8, 12, 16)
MOST_RANKS, MOST_MICROBATCHES = 16, 64
MOST_CELLS = 256  # of a schedule on the page
FEW = 4  # microbatches and ranks of the reduced grid
HEAD = json.dumps({"verdicts of": package_version()})
Advance = Callable[[int, Judged | None], None]


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


def sweep(
    items: Sequence[Wanted], executor: Executor | None, keep: Path | None, advance: Advance
) -> list[Judged]:
    """The verdict on each item, in their order. Ctrl-C is raised after what was decided is kept.

    ``advance`` hears how many of the items are done with, and the last of them.
    """
    known = kept(keep)
    todo = [item for item in items if item.key not in known]
    advance(len(items) - len(todo), None)
    todo.sort(key=lambda item: item.p * item.m)  # what is small, and wrong at the smallest, first

    def hear(_index: int, found: Judged) -> None:
        known[found.source, found.name, found.p, found.m] = found
        if keep is not None:
            append(keep, found)
        advance(1, found)

    run_all(executor, decided, todo, on_done=hear)
    return [known[item.key] for item in items]


def kept(path: Path | None) -> dict[tuple[str, str, int, int], Judged]:
    """What a kept file has. Raises ``ValueError`` for a file of another version, or no such file's.

    A last line that was cut short is taken out of the file.
    """
    if path is None or not path.exists():
        return {}
    first, *lines = path.read_text(encoding="utf-8").split("\n")
    if first != HEAD:
        raise ValueError(f"{path} has no verdicts of this version; take another file")
    if lines[-1]:  # cut short
        write_text(path, "\n".join([first, *lines[:-1], ""]))
    found = {}
    for line in lines[:-1]:
        each = judged_of(json.loads(line))
        found[each.source, each.name, each.p, each.m] = each
    return found


def judged_of(told: dict[str, Any]) -> Judged:
    """The verdict of a line."""
    placed = tuple(Placed(**each) for each in told["placed"])
    return Judged(**told | {"placed": placed, "broken": tuple(told["broken"])})


def append(path: Path, found: Judged) -> None:
    """One line more, of a file that ``kept`` has read."""
    if not path.exists():
        write_text(path, f"{HEAD}\n")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(found)) + "\n")
