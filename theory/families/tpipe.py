"""T-Pipe: chunks whose backwards come as early as they can, about (v+1)/2v of A.

Every rank repeats the same round (``rounds``): with forwards of 1 unit and backwards of 2, 3v units
hold one forward and one backward of each of its v chunks. With two chunks, in units, microbatch j
on rank r starts its

    forward 1    6j + r
    forward 2    6j + r + 3 + 6 x                        x = max(0, ceil((p-3)/6))
    backward 2   6j + 3 + 6 x + p + 2(p-1-r)
    backward 1   backward 2 + 3 + 6 y                    y = max(0, ceil((2p-3)/6))

(T-Pipe Appendix A, Figure 16: chunk 2 follows chunk 1 by x rounds forwards, chunk 1 follows chunk 2
by y rounds backwards.) These starts do not overlap on any rank and keep all dependencies, so their
order per rank is free of deadlock whatever the durations are; ``program`` gives the order, and the
schedule is left-shifted from it. Where tB = 2 tF the left shift closes the gaps that the rounds
leave in warm-up and cool-down: the makespan is 3v(m+p-1) tF (swept), 1F1B's. At other durations the
same order has gaps in every round: first at p=3, m=2 it takes longer than 2(m+p-1)(tF+tB).

More than two chunks are evaluated (Figure 14) and not drawn; ``rounds`` says what is the paper's
and what is ours. A chunk c lives about 3p(v-c) units, p(v-c)/v rounds of them, so that for large p
the peak comes from above to (v+1)/2v of A: 3/4, 2/3, 5/8 for 2, 3, 4 chunks.

Source: T-Pipe ("Chronos-aware pipeline parallelism") section 4.1, Appendix A. Legal range: any p
and m, v >= 2. The peak depends on the order alone.
"""

from __future__ import annotations

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.rounds import round_program
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class ManyChunks(Family):
    """A family of two or more chunks per rank, from shallow to deep."""

    options = frozenset({"v"})
    default_chunks = 2

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        if params.v is not None and params.v < 2:
            raise ValueError(self._too_few(params.v))
        return super().pipeline(params)

    def refusal(self, pipeline: Pipeline) -> str | None:
        if pipeline.num_chunks < 2:
            return self._too_few(pipeline.num_chunks)
        return super().refusal(pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        if pipeline.num_chunks == 2:
            return None
        return "The paper draws two chunks; for more bubbleproof derives the rounds from its text."

    def _too_few(self, chunks: int) -> str:
        return f"{self.name} has two chunks per rank or more, got v={chunks}"


class TPipe(ManyChunks):
    """Rounds of a forward and a backward of every chunk on every rank."""

    name = "tpipe"
    title = "T-Pipe"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.1, Appendix A"

    def program(self, pipeline: Pipeline) -> Program:
        return round_program(pipeline)
