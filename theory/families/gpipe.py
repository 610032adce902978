"""GPipe, and the two schedules that are GPipe over other pieces: all forwards, then all backwards.

GPipe's pieces are microbatches, TeraPipe's slices of them, the breadth-first order's microbatches
on v chunks, each chunk run over all microbatches before the next. Backwards come chunk v-1 first,
in microbatch order, and within a sample the last slice first, because slice k attends to the slices
before it. (GPipe's figure and PyTorch's ``ScheduleLoopedBFS`` reverse the microbatches, PyTorch's
``ScheduleGPipe`` does not; makespan and memory are the same.)

Sources: Huang et al., "GPipe" (NeurIPS 2019) section 2.3; Li et al., "TeraPipe: Token-Level
Pipeline Parallelism for Training Large-Scale Language Models" (ICML 2021, arXiv:2102.07988), whose
choice of uneven lengths is left out; MEPipe (EuroSys 2025) Figure 3; Lamy-Poirier,
"Breadth-First Pipeline Parallelism" (MLSys 2023) section 4.
Legal range: any p, m, v, s. Peak on every rank: m, m*s or m*v activations of a piece.
"""

from __future__ import annotations

from bubbleproof.theory.families.base import Family, in_turn
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class GPipe(Family):
    """All forwards, then all backwards."""

    name = "gpipe"
    title = "GPipe"
    source = "GPipe (NeurIPS 2019) section 2.3"
    least = frozenset({"bubble"})

    def program(self, pipeline: Pipeline) -> Program:
        pieces = pipeline.num_microbatches * pipeline.num_slices
        return in_turn(pipeline, [pieces * pipeline.num_chunks] * pipeline.num_ranks, [pieces])


class TeraPipe(GPipe):
    """All forwards slice by slice, then all backwards, the last slice of a sample first."""

    name = "terapipe"
    title = "TeraPipe"
    source = "TeraPipe (ICML 2021) section 3; MEPipe (EuroSys 2025) Figure 3"
    options = frozenset({"s"})


class BreadthFirst(GPipe):
    """All forwards chunk by chunk, then all backwards chunk by chunk."""

    name = "bfs"
    title = "Breadth-first"
    source = "Breadth-First Pipeline Parallelism (MLSys 2023) section 4"
    options = frozenset({"v"})
    default_chunks = 2
