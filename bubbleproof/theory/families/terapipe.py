"""TeraPipe: GPipe over slices of the samples.

Every rank runs the forwards of all microbatches, slice by slice, then all backwards; within a
sample the last slice goes back first, because slice k attends to the slices before it.

Source: Li et al., "TeraPipe: Token-Level Pipeline Parallelism for Training Large-Scale Language
Models" (ICML 2021, arXiv:2102.07988); MEPipe (EuroSys 2025) Figure 3. Slices are of
equal length here: TeraPipe's choice of uneven lengths is not part of this family. Backwards run in
microbatch order, as our ``gpipe`` does.
Legal range: any p, m, s. Peak: m*s activations of one slice (1/(ps) of a sample) on every rank.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class TeraPipe(Family):
    """All forwards slice by slice, then all backwards, the last slice of a sample first."""

    name = "terapipe"
    title = "TeraPipe"
    source = "TeraPipe (ICML 2021) section 3; MEPipe (EuroSys 2025) Figure 3"
    options = frozenset({"s"})

    def program(self, pipeline: Pipeline) -> Program:
        p, m, s = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_slices
        kind = np.repeat([Kind.F, Kind.B], m * s)
        microbatch = np.tile(np.repeat(np.arange(m), s), 2)
        forth = np.arange(s)
        slice_ = np.concatenate([np.tile(forth, m), np.tile(forth[::-1], m)])
        return program_of_ranks(
            [(kind, np.full(2 * m * s, rank), microbatch, slice_) for rank in range(p)]
        )
