"""What the field knows about its schedules, each formula with the bubble it means.

The claims are in ``field_first`` (GPipe, 1F1B, interleaved, breadth-first), ``field_zero_bubble``
(ZB-H1, ZB-H2, ZB-V, V-Half, V-Min) and ``field_bidirectional`` (Chimera, DualPipe, DualPipeV).
Where a formula is usually quoted without its condition, the unconditional form is a claim of its
own and names the conditional one as its correction.
"""

from __future__ import annotations

from bubbleproof.papers.claims import field_bidirectional, field_first, field_zero_bubble
from bubbleproof.papers.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *field_first.CLAIMS,
    *field_zero_bubble.CLAIMS,
    *field_bidirectional.CLAIMS,
)
