"""1F1B with two ranks and two microbatches, worked out by hand (tF = 1, tB = 2).

Rank 1 starts when 0F0 ends at 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7. Rank 0 runs F0 0-1, F1 1-2, then
waits for 1B0 (ends at 4): B0 4-6; then for 1B1 (ends at 7): B1 7-9. The makespan is 9 ticks; of
2 x 9 = 18 ticks 12 are work, so idle_ratio = 6/18 = 1/3. Rank 0 is idle at 2-4 and 6-7, rank 1 at
0-1 and 7-9.

Memory of rank 0: 1 from 0, 2 from 1, 1 from 6 (B0 ends), 0 from 9. Of rank 1: 1 from 1; at 4, B0
ends before F1 starts, so the load stays 1; 0 from 7.
"""

from __future__ import annotations

import zlib
from base64 import b64decode

import numpy as np

from bubbleproof.report.viewer.schedule_data import ColumnPlace
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

BARS = {  # kind -> (rank, start, end)
    "F": {(0, 0, 1), (0, 1, 2), (1, 1, 2), (1, 4, 5)},
    "B": {(0, 4, 6), (0, 7, 9), (1, 2, 4), (1, 5, 7)},
}
GAPS = {(0, 2, 4), (0, 6, 7), (1, 0, 1), (1, 7, 9)}
LOADS = ([1, 2, 2, 2, 2, 2, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 0, 0])  # per rank, in ticks 0..8


def small() -> FamilyMember:
    """The worked example."""
    return member("1f1b", p=2, m=2)


def sliced_bytes() -> tuple[Problem, Schedule]:
    """One rank, one sample in two slices of 1.5 GiB each, which just fit: F0.0, F0.1, B0.1, B0.0.

    The load is 1.5 GiB from 0, 3 GiB from 1, 1.5 GiB from 4 and 0 from 6; the capacity is 3 GiB.
    """
    problem = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        num_slices=2,
        activation=3 << 29,
        capacity=3 << 30,
        memory_unit="byte",
    ).problem()
    program = Program.from_orders([["0F0", "0F0.1", "0B0.1", "0B0"]])
    return problem, left_shift(problem, program)


def unpacked(text: str, place: ColumnPlace) -> Ints:
    """One column as it was: what a page's script reads."""
    content = zlib.decompress(b64decode(text))
    kept = np.frombuffer(content, f"<{place.type}", place.length, place.first).astype(np.int64)
    return np.cumsum(kept) if place.steps else kept


def unpacked_lines(text: str) -> list[str]:
    """The lines as they were."""
    content = zlib.decompress(b64decode(text)).decode()
    return content.split("\n") if content else []
