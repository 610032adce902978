"""T-Recomp: the shallow chunk is recomputed, in tasks R of their own, right before its backward.

Half of A has the longest life and costs one forward to make again. Recomputing chunk 1 (stages
0..p-1) lengthens the round of T-Pipe from 6 to 7 units. In units, microbatch j on rank r starts its

    forward 2    7j - 1 - i - ceil(i/2)                  i = p-1-r
    backward 2   7j + 2i
    recompute    backward 2 + 3 + 7 y                    y = max(0, ceil((2p-4)/7))
    backward 1   backward 2 + 4 + 7 y
    forward 1    7j + 2 - 7(x+1) - i - floor(i/2)        x = max(0, ceil((p + ceil((p-1)/2) - 4)/7))

so that forwards wait one unit on every second rank (T-Pipe Appendix C) and chunk 2 follows chunk 1
by x rounds, the least that its dependencies allow: x - ceil((p-3)/6) is the paper's delay k
(Appendix B). As in ``tpipe`` the order per rank is that of these starts; times are left-shifted.

``trecomp-interleaved`` is Megatron's order with an R right before each backward of chunk 1
(T-Pipe section 4.2, Figure 6(e)).

A recomputed activation costs a unit while its forward runs and from R on; its boundary input is
neglected, as in the paper (``recompute.Recompute.kept`` counts it).
Source: T-Pipe section 4.2, Appendices B and C. Legal range: any p, m; v = 2 only.
"""

from __future__ import annotations

from bubbleproof.theory.families.interleaved import Interleaved
from bubbleproof.theory.families.parameters import Parameters
from bubbleproof.theory.families.tpipe import TwoChunks, periodic_program
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute


class Recomputing(TwoChunks):
    """Two chunks per rank, of which the shallow one is recomputed."""

    adds = frozenset({"recompute"})

    def pipeline(self, params: Parameters) -> Pipeline:
        return self.recomputing(super().pipeline(params))

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The shallow chunk recomputed, nothing of it kept."""
        return self.recomputing(pipeline)

    def recomputing(
        self, pipeline: Pipeline, *, kept: int = 0, duration: int | None = None
    ) -> Pipeline:
        """The pipeline with its shallow chunk recomputed; see ``Recompute`` for the numbers."""
        stages = tuple(range(pipeline.num_ranks))
        choice = Recompute(stages=stages, kept=kept, duration=duration)
        return pipeline.with_changes(recompute=choice)

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        choice = pipeline.choices.recompute
        if choice is None or set(choice.stages) != set(range(pipeline.num_ranks)):
            return (
                f"{self.name} recomputes stages 0..{pipeline.num_ranks - 1}; make the pipeline "
                f"with family({self.name!r}).recomputing(pipeline)"
            )
        return None


class TRecomp(Recomputing):
    """Rounds of T-Pipe's four tasks and the recomputation of the shallow chunk."""

    name = "trecomp"
    title = "T-Pipe with T-Recomp"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.2, Appendices B and C"

    def program(self, pipeline: Pipeline) -> Program:
        return periodic_program(pipeline, trecomp_starts, 7)


class TRecompInterleaved(Recomputing):
    """Interleaved 1F1B with each recomputation right before the backward that needs it."""

    name = "trecomp-interleaved"
    title = "Interleaved 1F1B with T-Recomp"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.2, Figure 6(e)"

    def program(self, pipeline: Pipeline) -> Program:
        p = pipeline.num_ranks
        plain = Interleaved().program(pipeline).orders(p)
        return Program.from_orders([with_recomputations(order, p) for order in plain])


def trecomp_starts(p: int, rank: int) -> dict[tuple[Kind, int], int]:
    """Start of microbatch 0 by (kind, chunk), in units; microbatch j comes 7j units later."""
    hops = p - 1 - rank
    again = 2 * hops + 3 + 7 * _rounds(2 * p - 4)
    return {
        (Kind.F, 0): 2 - 7 * (forward_rounds(p) + 1) - hops - hops // 2,
        (Kind.F, 1): -1 - hops - (hops + 1) // 2,
        (Kind.B, 1): 2 * hops,
        (Kind.R, 0): again,
        (Kind.B, 0): again + 1,
    }


def forward_rounds(p: int) -> int:
    """x: rounds by which chunk 2 follows chunk 1 forwards."""
    return _rounds(p + p // 2 - 4)


def _rounds(units: int) -> int:
    """The least number of rounds of 7 units that last as long."""
    return max(0, -(-units // 7))


def with_recomputations(order: list[Action], p: int) -> list[Action]:
    """A rank's order with an R right before each backward of stages 0..p-1."""
    result: list[Action] = []
    for action in order:
        if action.kind is Kind.B and action.stage < p:
            result.append(Action(stage=action.stage, kind=Kind.R, microbatch=action.microbatch))
        result.append(action)
    return result
