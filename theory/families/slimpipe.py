"""SlimPipe: 1F1B over equal slices, each rank with one sample and 2(p-r-1) slices more in flight.

Rank r runs s*v + 2(p-r-1) forwards of slices, the whole first sample among them, and then one
backward and one forward in turn; a sample's backwards run back through its forwards. At one chunk
that is Seq1F1B with p-r-1 forwards more, whose use is that a message may take as long as a pass:
it delays the first forward and the last backward of each link, and none between.

With v chunks the slices of a sample pass by groups, chunk after chunk; a group is the least divisor
of s that is p or more.

Source: Li et al., "SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM
Training" (SC 2025, doi:10.1145/3712285.3759855, arXiv:2504.14519). The order is that of its code,
``pipelining_with_slicing`` and ``pipelining_with_interleaved_slicing`` of Kuaishou's Megatron
(``schedules.py`` as Cuiym715/Megatron-LM keeps it at 0381aef). Left out: its exchange of attention
between ranks, by which the slices of a sample take equal ticks, and its vocabulary over all ranks.
Legal range: any p, m, s at v = 1; at v >= 2 s is p or more. (The code also refuses fewer passes
behind the first sample than 2(p-1); here the warm-up is then all forwards.)

At any durations of a slice a step takes (m*s*v + p-1)(tF + tB) ticks, and rank r holds at most
min(m*s*v, s*v + 2(p-r-1)) slices of a chunk: of rank 0 (1 + 2(p-1)/(s*v))/p of a sample.
Its artifact's figures are these but in four rows, and leave m*s*v out (docs/catalogue/slimpipe.md).
"""

from __future__ import annotations

from bubbleproof.theory.families.base import Family, in_turn
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class SlimPipe(Family):
    """One forward and one backward of a slice in turn, after a sample and 2(p-r-1) slices more."""

    name = "slimpipe"
    title = "SlimPipe"
    source = "SlimPipe (SC 2025), and its code"
    options = frozenset({"v", "s"})

    def refusal(self, pipeline: Pipeline) -> str | None:
        p, s = pipeline.num_ranks, pipeline.num_slices
        if pipeline.num_chunks > 1 and s < p:
            return f"{self.name} with chunks takes p={p} slices of a sample or more, got s={s}"
        return super().refusal(pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        p, passes = pipeline.num_ranks, pipeline.num_slices * pipeline.num_chunks
        if (pipeline.num_microbatches - 1) * passes >= 2 * (p - 1):
            return None
        return "The source refuses fewer than 2(p-1) passes behind the first sample."

    def program(self, pipeline: Pipeline) -> Program:
        p, m, s = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_slices
        group = s if pipeline.num_chunks == 1 else next(g for g in range(p, s + 1) if s % g == 0)
        warmups = [s * pipeline.num_chunks + 2 * r for r in range(p)[::-1]]
        return in_turn(pipeline, warmups, [group] * (m * s // group), stacked=True)
