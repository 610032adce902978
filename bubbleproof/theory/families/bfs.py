"""Breadth-first: v chunks per rank, each chunk run over all microbatches before the next.

Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism" (MLSys 2023) section 4; backwards run in
microbatch order, chunk v-1 first (PyTorch's ``ScheduleLoopedBFS`` reverses the microbatches; the
makespan and the peak are the same). Legal range: any p, m, v. Peak: m*v activations on every rank.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class BreadthFirst(Family):
    """All forwards chunk by chunk, then all backwards chunk by chunk."""

    name = "bfs"
    title = "Breadth-first"
    source = "Breadth-First Pipeline Parallelism (MLSys 2023) section 4"
    options = frozenset({"v"})
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        kind = np.repeat([Kind.F, Kind.B], m * v)
        chunk = np.repeat(np.concatenate([np.arange(v), np.arange(v)[::-1]]), m)
        microbatch = np.tile(np.arange(m), 2 * v)
        return program_of_ranks([(kind, chunk * p + rank, microbatch) for rank in range(p)])
