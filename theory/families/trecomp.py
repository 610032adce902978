"""T-Recomp: shallow chunks are recomputed, in tasks R of their own, right before their backward.

What is held longest costs one forward to make again. Recomputing k of v chunks lengthens the round
of T-Pipe from 3v to 3v + k units (``rounds``). With two chunks, in units, microbatch j on rank r
starts its

    forward 2    7j - 1 - i - ceil(i/2)                  i = p-1-r
    backward 2   7j + 2i
    recompute    backward 2 + 3 + 7 y                    y = max(0, ceil((2p-4)/7))
    backward 1   backward 2 + 4 + 7 y
    forward 1    7j + 2 - 7(x+1) - i - floor(i/2)        x = max(0, ceil((p + ceil((p-1)/2) - 4)/7))

so that forwards wait one unit on every second rank (T-Pipe Appendix C) and chunk 2 follows chunk 1
by x rounds, the least that its dependencies allow: x - ceil((p-3)/6) is the paper's delay k
(Appendix B). As in ``tpipe`` the order per rank is that of these starts; times are left-shifted.

Which chunks: "strategically prioritizes recomputation of shallower layers" (section 4.2), so the k
first, those of the longest lives. R says how many in per cent of the layers (``recomputed_share``);
without it half of them, rounded down but at least one. Figure 14 goes through all R at two, three
and four chunks. For large p what is kept comes to (v-k)(v-k+1)/2v^2 of A, from above.

``trecomp-interleaved`` is Megatron's order with an R right before each backward of those chunks
(T-Pipe section 4.2, Figure 6(e), which draws two chunks).

A recomputed activation costs a unit while its forward runs and from R on; its boundary input is
neglected, as in the paper (``recompute.Recompute.kept`` counts it).
Source: T-Pipe section 4.2, Appendices B and C. Legal range: any p, m, v >= 2, 1 <= k <= v.
"""

from __future__ import annotations

from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.recomputed_1f1b import chunks_of_share, share_of_chunks
from bubbleproof.theory.families.rounds import round_program
from bubbleproof.theory.families.tpipe import ManyChunks
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute


class RecomputingFamily(ManyChunks):
    """Two chunks per rank or more, of which shallow ones are recomputed."""

    options = frozenset({"v", "R"})
    adds = frozenset({"recompute"})

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        pipeline = super().pipeline(params)
        if params.R is None:
            return self.recomputing(pipeline)
        chunks = chunks_of_share(params.R, pipeline.num_chunks)
        if not chunks:
            raise ValueError(f"{self.name} recomputes one chunk or more, got R={params.R}")
        return self.recomputing(pipeline, chunks=chunks)

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The shallow half recomputed, nothing of it kept."""
        return self.recomputing(pipeline)

    def recomputing(
        self,
        pipeline: Pipeline,
        *,
        chunks: int | None = None,
        kept: int = 0,
        duration: int | None = None,
    ) -> Pipeline:
        """The pipeline with its ``chunks`` shallowest (None: half) recomputed.

        ``kept`` and ``duration`` as in ``Recompute``.

        Parameters
        ----------
        chunks
            How many of a rank's are recomputed, the shallowest; None for half.
        kept
            Units of each activation that stay.
        duration
            Ticks of an R; those of its forward where None is given.
        """
        count = max(1, pipeline.num_chunks // 2) if chunks is None else chunks
        stages = tuple(range(count * pipeline.num_ranks))
        choice = Recompute(stages=stages, kept=kept, duration=duration)
        return pipeline.with_changes(recompute=choice)

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        count = recomputed_chunks(pipeline)
        choice = pipeline.choices.recompute
        p = pipeline.num_ranks
        if choice is None or not count or set(choice.stages) != set(range(count * p)):
            which = f"stages 0..{p - 1}" + (" or more chunks" if pipeline.num_chunks > 2 else "")
            return (
                f"{self.name} recomputes {which}; make the pipeline "
                f"with family({self.name!r}).recomputing(pipeline)"
            )
        return None

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        share = share_of_chunks(recomputed_chunks(pipeline), pipeline.num_chunks)
        return {**super().full_params(params, pipeline), "R": share}


class TRecomp(RecomputingFamily):
    """Rounds of T-Pipe's tasks and the recomputations of shallow chunks."""

    name = "trecomp"
    title = "T-Pipe with T-Recomp"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.2, Appendices B and C"

    def program(self, pipeline: Pipeline) -> Program:
        return round_program(pipeline, recomputed_chunks(pipeline))


class TRecompInterleaved(RecomputingFamily):
    """Interleaved 1F1B with each recomputation right before the backward that needs it."""

    name = "trecomp-interleaved"
    title = "Interleaved 1F1B with T-Recomp"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 4.2, Figure 6(e)"

    def ours(self, pipeline: Pipeline) -> str | None:
        return InterleavedOneForwardOneBackward().ours(pipeline) or super().ours(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        plain = InterleavedOneForwardOneBackward().program(pipeline).orders(pipeline.num_ranks)
        stages = recomputed_chunks(pipeline) * pipeline.num_ranks
        return Program.from_orders([with_recomputations(order, stages) for order in plain])


def recomputed_chunks(pipeline: Pipeline) -> int:
    """k: as many whole chunks as its recomputed stages are, rounded down."""
    choice = pipeline.choices.recompute
    return 0 if choice is None else len(choice.stages) // pipeline.num_ranks


def with_recomputations(order: list[Action], stages: int) -> list[Action]:
    """A rank's order with an R right before each backward of the first ``stages`` stages.

    Parameters
    ----------
    stages
        How many stages are recomputed, from stage 0 on.
    """
    result: list[Action] = []
    for action in order:
        if action.kind is Kind.B and action.stage < stages:
            result.append(Action(stage=action.stage, kind=Kind.R, microbatch=action.microbatch))
        result.append(action)
    return result
