"""The processes that come from this one, as the machine knows them."""

from __future__ import annotations

import os
import time
from pathlib import Path

HAS_PROC = Path("/proc/self/stat").exists()


def parents() -> dict[int, int]:
    """The parent of every process that has not ended, by /proc."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if fields[0] != "Z":
                found[int(entry.name)] = int(fields[1])
    return found


def descendants(of: int | None = None) -> set[int]:
    """The processes that came from the one named, or from this one, itself included."""
    known, found = parents(), {os.getpid() if of is None else of}
    while more := {pid for pid, parent in known.items() if parent in found} - found:
        found |= more
    return found


def outlive(pids: set[int], seconds: float) -> set[int]:
    """Those of the processes that are still there after at most so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := pids & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
