"""GPipe: all forwards, then all backwards.

Source: Huang et al., "GPipe" (NeurIPS 2019), section 2.3; backwards in microbatch order, as in
PyTorch's ``ScheduleGPipe`` (GPipe's figure runs them in reverse; makespan and memory are the same).
Legal range: any p, m. Peak: m activations on every rank.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class GPipe(Family):
    """All forwards, then all backwards."""

    name = "gpipe"
    title = "GPipe"
    source = "GPipe (NeurIPS 2019) section 2.3"

    def program(self, pipeline: Pipeline) -> Program:
        m = pipeline.num_microbatches
        kind = np.repeat([Kind.F, Kind.B], m)
        microbatch = np.tile(np.arange(m), 2)
        return program_of_ranks(
            [(kind, np.full(2 * m, rank), microbatch) for rank in range(pipeline.num_ranks)]
        )
