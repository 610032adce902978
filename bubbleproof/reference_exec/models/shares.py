"""Shares of a stage's weight-gradient GEMMs: which of them each part of a W runs. Loads no torch.

Where a schedule cuts W into parts (MEPipe section 5), W#n runs the n-th share of the stage's GEMMs.
These stand in the order in which a backward meets them, from the stage's last parameter to its
first; the shares follow each other in it, as even as can be, longer ones first:

>>> shares(7, 3)
(range(0, 3), range(3, 5), range(5, 7))
>>> shares(2, 3)
(range(0, 1), range(1, 2), range(2, 2))

With fewer GEMMs than parts the last parts do nothing.
"""

from __future__ import annotations

from itertools import accumulate, pairwise


def shares(num_gemms: int, num_parts: int) -> tuple[range, ...]:
    """The numbers of the GEMMs of each part. Precondition: at least one part."""
    length, longer = divmod(num_gemms, num_parts)
    ends = accumulate((length + (part < longer) for part in range(num_parts)), initial=0)
    return tuple(range(begin, end) for begin, end in pairwise(ends))
