"""SVPP with weight gradients apart (MEPipe section 5), whole or cut into single GEMMs.

The backward of a slice is split into I and W. W waits in a queue of its rank and is taken out when
the rank would otherwise wait, or when it holds f units and a forward could go on: a unit is held
from F to the end of W, so a rank without room does W at once and one with room delays it
(section 5, Figure 7).

Here f bounds what a rank holds, and may exceed SVPP's largest f up to all m*v*s units: Figure 7(b)
spends memory above 7(a)'s that way. With one slice, one chunk and f = 2p-1 it idles no more than
ZB-H2. The default is SVPP's largest f, as in Figure 7(a).

Where the pipeline cuts W into parts (``weight_parts``) or its slices differ in cost (rows of
ticks), the order of F and I stays and that of W is found at those ticks, see ``svpp_gemms``: the
shortest of a few runs. Otherwise the order is that of equal ticks. Not covered: a
choice at run time, and another order of F and I than that of equal ticks.
Source: MEPipe (EuroSys 2025) section 5. Legal range: any p, m, v, s and v*s <= f <= m*v*s.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.families.svpp import SVPP, least_forwards
from bubbleproof.theory.families.svpp_gemms import shortest_filling
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class SVPPWeights(SVPP):
    """SVPP with I and W, W filling the waits; ``forwards`` bounds what a rank holds."""

    name = "svpp-w"
    title = "SVPP, weight gradients apart"
    source = "MEPipe (EuroSys 2025) section 5"
    is_split = True
    cuts_weights = True

    def largest(self, pipeline: Pipeline) -> int:
        return pipeline.num_microbatches * least_forwards(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        whole = super().program(pipeline)
        ticks = (
            pipeline.ticks.forward,
            pipeline.ticks.input_backward,
            pipeline.ticks.weight_backward,
        )
        is_even = all((table == table[:, :1]).all() for table in ticks)
        if is_even and not pipeline.weight_parts:
            return whole
        return shortest_filling(pipeline, whole, self.limit(pipeline))
