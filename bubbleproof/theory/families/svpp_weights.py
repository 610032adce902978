"""SVPP with weight gradients apart: MEPipe section 5 with one W per slice and chunk.

The backward of a slice is split into I and W. W waits in a queue of its rank and is taken out when
the rank would otherwise wait, or when it holds f units and a forward could go on: a unit is held
from F to the end of W, so a rank without room does W at once and one with room delays it
(section 5, Figure 7).

Here f bounds what a rank holds, and may exceed SVPP's largest f up to all m*v*s units: Figure 7(b)
spends memory above 7(a)'s that way. With one slice, one chunk and f = 2p-1 it idles no more than
ZB-H2. The default is SVPP's largest f, as in Figure 7(a).

Covered: the order of F, I and W of each slice on each rank, within f. Not covered: the cut of W
into single GEMMs (a W here is all GEMMs of a slice on a chunk, so nothing can start in its middle)
and the choice at run time (the order is fixed at equal ticks). A ``Pipeline`` has durations per
stage, so Figure 7's slices of unequal cost are a ``Problem`` with its durations changed; the tests
do it.
Source: MEPipe (EuroSys 2025) section 5. Legal range: any p, m, v, s and v*s <= f <= m*v*s.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.families.svpp import SVPP, least_forwards
from bubbleproof.theory.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class SVPPWeights(SVPP):
    """SVPP with I and W, W filling the waits; ``forwards`` bounds what a rank holds."""

    name = "svpp-w"
    title = "SVPP, weight gradients apart"
    source = "MEPipe (EuroSys 2025) section 5"
    is_split = True

    def largest(self, pipeline: Pipeline) -> int:
        return pipeline.num_microbatches * least_forwards(pipeline)
