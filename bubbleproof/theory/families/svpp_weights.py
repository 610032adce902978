"""SVPP with weight gradients apart: MEPipe section 5 with one W per slice and chunk.

The backward of a slice is split into I and W. W waits in a queue of its rank and is taken out when
the rank would otherwise wait, or when it holds f units and a forward could go on: a unit is held
from F to the end of W, so a rank without room does W at once and one with room delays it
(section 5, Figure 7).

Covered: the order of F, I and W of each slice on each rank, under the same bound f on what a rank
holds. Not covered: the cut of W into single GEMMs (a W here is all GEMMs of a slice on a chunk, so
nothing can start in its middle) and the decision at run time; the order is fixed at equal ticks.
Slices of unequal cost are a pipeline's durations per stage only: Figure 7's forward of slice 0 that
lasts 3/4 of that of slice 1 cannot be said.
Source: MEPipe (EuroSys 2025) section 5. Legal range: as ``svpp``.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.families.svpp import SVPP


@dataclass(frozen=True, kw_only=True)
class SVPPWeights(SVPP):
    """SVPP with I and W, W filling the waits; ``forwards`` bounds what a rank holds."""

    name = "svpp-w"
    title = "SVPP, weight gradients apart"
    source = "MEPipe (EuroSys 2025) section 5"
    is_split = True
