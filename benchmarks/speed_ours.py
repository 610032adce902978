"""Our side of ``verify_speed``, for a process of its own so that its memory is ours alone."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.verify import check

T = TypeVar("T")
MEBIBYTE = 1 << 20


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


def measure_ours(
    tell: Callable[[dict[str, float]], None],
    ranks: int,
    microbatches: int,
    chunks: int,
    repeats: int,
) -> None:
    """Tell our seconds, and the peak resident bytes of this process."""
    build, found = timed(lambda: interleaved(ranks, microbatches, chunks), repeats)
    checking, verdict = timed(lambda: check(found.problem, found.schedule), repeats)
    assert verdict.ok, str(verdict)
    tell(
        {
            "tasks": found.problem.num_tasks,
            "build_s": build,
            "check_s": checking,
            "peak_resident_mib": peak_resident_bytes() / MEBIBYTE,
        }
    )
