"""Our side of ``verify_speed``, in a process of its own so that its memory is ours alone.

Prints one JSON object: seconds and the peak resident bytes of this process.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.verify import check

T = TypeVar("T")


def timed(action: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The least seconds of ``repeats`` runs, and the last result."""
    seconds = []
    for _ in range(repeats):
        gc.collect()
        begin = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), result


def interleaved(ranks: int, microbatches: int, chunks: int) -> FamilyMember:
    """The benchmark's schedule: Pipeline, Problem, order and left-shifted starts."""
    return member("interleaved", p=ranks, m=microbatches, v=chunks)


def peak_resident_bytes() -> int:
    """The most memory this process has had resident (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("ranks", "microbatches", "chunks", "repeats"):
        parser.add_argument(name, type=int)
    size = parser.parse_args()
    build, found = timed(
        lambda: interleaved(size.ranks, size.microbatches, size.chunks), size.repeats
    )
    checking, verdict = timed(lambda: check(found.problem, found.schedule), size.repeats)
    assert verdict.ok, str(verdict)
    result = {
        "tasks": found.problem.num_tasks,
        "build_s": build,
        "check_s": checking,
        "peak_resident_bytes": peak_resident_bytes(),
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
