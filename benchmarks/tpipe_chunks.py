"""Figure 14 of T-Pipe, and AdaPipe: more than two chunks, all ratios.

Figure 14's values are not in the text; its sentences are claims (``tpipe.sec6.4.*``). What stands
here is measured on built schedules of 8 ranks, 24 microbatches.
"""

from __future__ import annotations

from fractions import Fraction

from benchmarks.markdown import markdown_table
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_schedules import RECOMPUTED_1F1B, adapipe_over_trecomp, kept
from bubbleproof.theory.families.recomputed_1f1b import share_of_chunks

AT = {"p": 8, "m": 24}
CHUNKS = (2, 3, 4)
FIGURE_14 = """
## Figure 14: chunks and ratios

What is kept of m_a on the fullest of 8 ranks, the buffer of what is recomputed left out as in the
figure. R is the share of a rank's chunks that are recomputed: the shallowest with T-Recomp, which
the rows of 0 % are without. Interleaved 1F1B recomputed at one ratio keeps that share of its own
peak. The text prints none of these values; what it says of them (claims `tpipe.sec6.4.*`) holds,
"finer-grained chunks" on 8 ranks and not on all.

"""
ADAPIPE = """
## AdaPipe at T-Recomp's memory

AdaPipe's plan ({family}) for 8 ranks and 32 microbatches, no rank holding more activations than
T-Recomp's fullest, by ticks alone. At layers kept or recomputed whole it takes {coarse} longer
than T-Recomp on 48 layers and {fine} on 96. Section 6.3 prints 2.59 to 2.82 % MFU in AdaPipe's
favour. What it recomputed there, less than whole layers or more, and the times of kernels and of
T-Recomp's doubled messages are not printed; nor was AdaPipe's own text at hand.
"""


def sections() -> str:
    """The part of the page."""
    longer = [
        f"{100 * float(adapipe_over_trecomp({'p': 8, 'm': 32, 'v': v}) - 1):.1f} %" for v in (6, 12)
    ]
    told = ADAPIPE.format(family="`adapipe`", coarse=longer[0], fine=longer[1])
    return FIGURE_14 + markdown_table(_HEADER, _rows()) + told


_HEADER = ("chunks", "R", "1F1B", "T-Pipe, T-Recomp", "interleaved", "interleaved, T-Recomp")


def _rows() -> list[tuple[str, ...]]:
    found = []
    for v in CHUNKS:
        whole = on.share(on.INTERLEAVED, {**AT, "v": v})
        first = (Fraction(1), on.share(on.TPIPE, {**AT, "v": v}), whole, whole)
        found.append((str(v), "0 %", *map(_percent, first)))
        for k in range(1, v):
            at = {**AT, "v": v, "k": k}
            units = v * AT["p"]
            shares = (
                Fraction(kept(RECOMPUTED_1F1B, at), units),
                Fraction(kept(on.TRECOMP, at), units),
                whole * Fraction(v - k, v),
                Fraction(kept(on.TRECOMP_INTERLEAVED, at), units),
            )
            found.append((str(v), f"{share_of_chunks(k, v)} %", *map(_percent, shares)))
    return found


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.1f} %"
