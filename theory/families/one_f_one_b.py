"""1F1B: as few forwards ahead as keep the pipeline busy, then one backward per forward.

Rank r of p warms up with min(p - r, m) forwards and then runs one backward and one forward in turn.
Source: Narayanan et al., "PipeDream" (SOSP 2019); the flushed form is DAPPLE's (PPoPP 2021) and
BPipe's Figure 2. Legal range: any p, m. Peak on rank r: min(p - r, m) activations.
"""

from __future__ import annotations

from bubbleproof.theory.families.base import Family, in_turn
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class OneForwardOneBackward(Family):
    """p - r forwards on rank r, then one backward and one forward in turn."""

    name = "1f1b"
    title = "1F1B"
    source = "DAPPLE (PPoPP 2021); BPipe section 2, Figure 2"
    least = frozenset({"bubble", "memory"})

    def program(self, pipeline: Pipeline) -> Program:
        return in_turn(pipeline, range(pipeline.num_ranks, 0, -1), [pipeline.num_microbatches])
