"""Interleaved 1F1B: each rank holds v chunks and works through them depth first.

Microbatches run in groups: a group passes chunk 0, then chunk 1, ... up to v-1, and then the next
group starts (backwards: chunk v-1 first). With groups of n microbatches, rank r warms up with
(v-1)n + 2(p-r-1) + 1 forwards (BPipe Appendix A counts the same with n = p), at most m*v of them,
and then runs one backward and one forward in turn.

Source: Narayanan et al., "Megatron-LM" (SC 2021) section 2.2; order as in Megatron-LM's
``get_schedule_table``. Where p divides m the groups are p microbatches, as there. Where it does
not, a short last group can deadlock (first at p=4, m=5, v=3; Megatron refuses such sizes), so the
remainder is spread over the max(1, m div p) groups instead, larger groups first; every group but a
lone one then has at least p microbatches.
Legal range: any p, m, v.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.actions import Ints, Kind
from bubbleproof.theory.families.family import Family, one_forward_one_backward, program_of_ranks
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.schedule import Program


class Interleaved(Family):
    """Megatron's depth-first order over v chunks per rank."""

    name = "interleaved"
    title = "Interleaved 1F1B"
    source = "Megatron-LM (SC 2021) section 2.2; BPipe Appendix A"
    options = frozenset({"v"})
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        sizes = group_sizes(p, m)
        chunk, microbatch = depth_first_table(sizes, v)
        rows = []
        for rank in range(p):
            warmup = 2 * (p - rank - 1) + (v - 1) * int(sizes[0]) + 1
            kind, position = one_forward_one_backward(warmup, m * v)
            which = np.where(kind == Kind.F, chunk[position], v - 1 - chunk[position])
            rows.append((kind, which * p + rank, microbatch[position]))
        return program_of_ranks(rows)


def group_sizes(p: int, m: int) -> Ints:
    """Microbatches of each group: max(1, m div p) groups, as equal as can be, larger ones first."""
    count = max(1, m // p)
    return m // count + (np.arange(count) < m % count).astype(np.int64)


def depth_first_table(sizes: Ints, v: int) -> tuple[Ints, Ints]:
    """(chunk, microbatch) of each forward in order, shape (m*v,): by group, then by chunk."""
    ends = np.cumsum(sizes)
    groups = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    chunk = np.concatenate([np.repeat(np.arange(v), len(group)) for group in groups])
    microbatch = np.concatenate([np.tile(group, v) for group in groups])
    return chunk, microbatch
