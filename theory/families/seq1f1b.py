"""Seq1F1B: 1F1B over slices of samples, the backwards of a sample with its last slice first.

Slice k of a sample attends to the slices before it, so that its backward comes after theirs. With s
slices a rank warms up with s - 1 forwards more than 1F1B does of whole samples: p - r + s - 2 on
rank r, and then runs one forward and one backward in turn. Its peak is the p - r + s - 1 slices of
1F1B's p - r samples, so that memory falls and the warm-up takes slices.

With v chunks (Seq1F1B-I) the pieces go by groups of p, chunk after chunk, as microbatches do in
``interleaved``: rank r warms up with (v-1)p + 2(p-r-1) + s - 1. A group of p pieces passes the last
chunk before the next group begins the first, so that the s slices of a sample must lie in one
group, or ranks would wait for each other.

Source: Sun et al., "Seq1F1B" (NAACL 2025, arXiv:2406.03488), Figure 1; the order is that of its
code (thunlp/Seq1F1B at 6893466, ``schedules.py`` and ``sp_utils.py``), which at v >= 2 and m = p
runs all forwards first, and here does not. Its slices of unequal length are a pipeline's ticks by
slice. Legal range: any p, m, s at v = 1; at v >= 2 s divides p and p divides m*s.

At any durations of a slice a step takes (m*s*v + p-1)(tF + tB) ticks, and rank r holds at most
min(m*s*v, (v-1)p + a(p-r-1) + s) slices of a chunk, a = 1 at one chunk and 2 at more.
"""

from __future__ import annotations

from bubbleproof.theory.families.base import Family, in_turn
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class SeqOneForwardOneBackward(Family):
    """One forward and one backward of a slice in turn, with v chunks by groups of p slices."""

    name = "seq1f1b"
    title = "Seq1F1B"
    source = "Seq1F1B (NAACL 2025) Figure 1, and its code"
    options = frozenset({"v", "s"})

    def refusal(self, pipeline: Pipeline) -> str | None:
        p, m, s = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_slices
        if pipeline.num_chunks > 1 and (p % s or m * s % p):
            return (
                f"{self.name} with chunks takes groups of p={p} slices with whole samples in each: "
                f"s divides p and p divides m*s, got m={m} s={s}"
            )
        return super().refusal(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        p, v, s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
        pieces = pipeline.num_microbatches * s
        group, fall = (p, 2) if v > 1 else (pieces, 1)
        warmups = [(v - 1) * p + fall * r + s for r in range(p)[::-1]]
        return in_turn(pipeline, warmups, [group] * (pieces // group))
