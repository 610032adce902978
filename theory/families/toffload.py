"""T-Offload: T-Pipe whose deep chunks are updated by the host, within T-Pipe's own bubbles.

The order of computations is T-Pipe's (T-Recomp's where the pipeline recomputes, which the paper
calls TPipe ALL). Each deep stage g brings RELOAD before its first forward, OFFLOAD after its last
backward and STEP after that, each on an engine of its rank (``theory.pipelines.state_offload``).
Deep are all chunks but the first: at their limit two, three and four chunks save 33.33, 44 and
"near-maximal 49.09" per cent of the state, "with only the first chunk's [...] unoffloaded" (section
6.4), and an optimizer state of 12 of 18 bytes gives 2(v-1)/3v. Fewer may be off-loaded, the deepest
(``offloading``). An engine reloads from shallow to deep, as the first forwards need it, and
off-loads and steps from deep to shallow, as the last backwards end; the paper draws two chunks.
A schedule hides them if its makespan is T-Pipe's and the last STEP ends no later.

The command has no parameters for them: RELOAD, OFFLOAD and STEP take the ticks of a deep forward
each, and weights, gradients and optimizer state weigh nothing; ``offloading`` takes other numbers.
With these defaults OFFLOAD and STEP of two chunks fit the paper's window (Appendix D, equation 6)
from p = 3 on.
From p = 6 on that window is several idle stretches of at most 4 tF, with backwards in between.
Source: T-Pipe section 5, Appendix D. Legal range: any p, m, v >= 2.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.tpipe import ManyChunks, TPipe
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.actions import NONE, ActionTable, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.state_offload import ENGINES, StateOffload


class TOffload(ManyChunks):
    """T-Pipe with the deep chunks' optimizer steps on the host."""

    name = "toffload"
    title = "T-Pipe with T-Offload"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 5, Appendix D"
    adds = frozenset({"state_offload", "recompute"})

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        ticks = params.tF
        return self.offloading(super().pipeline(params), offload=ticks, step=ticks, reload=ticks)

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The deep chunks off-loaded; each transfer and step as long as the longest forward."""
        problem = pipeline.problem()
        ticks = int(problem.duration[problem.actions.is_kind(Kind.F)].max(initial=0))
        return self.offloading(pipeline, offload=ticks, step=ticks, reload=ticks)

    def offloading(
        self, pipeline: Pipeline, *, chunks: int | None = None, **numbers: int
    ) -> Pipeline:
        """The pipeline with its ``chunks`` deepest (None: all but one) off-loaded.

        ``numbers`` as in ``StateOffload``, each of one stage.

        Parameters
        ----------
        chunks
            How many of a rank's are off-loaded, the deepest; None for all but one.
        **numbers
            Fields of ``StateOffload``, each of one stage.
        """
        p, v = pipeline.num_ranks, pipeline.num_chunks
        first = 1 if chunks is None else v - chunks
        choice = StateOffload(stages=tuple(range(first * p, v * p)), **numbers)
        return pipeline.with_changes(state_offload=choice)

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        p, v = pipeline.num_ranks, pipeline.num_chunks
        first = _first_away(pipeline)
        choice = pipeline.choices.state_offload
        away = set(range(first * p, v * p))
        if choice is None or not 0 < first < v or set(choice.stages) != away:
            which = f"stages {p}..{v * p - 1}" + (" or their deeper chunks" if v > 2 else "")
            return (
                f"{self.name} off-loads {which}; make the pipeline with "
                f"family({self.name!r}).offloading(pipeline)"
            )
        computed = pipeline.with_changes(state_offload=None)
        return self._computations(pipeline).refusal(computed)

    def program(self, pipeline: Pipeline) -> Program:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        compute = self._computations(pipeline).program(pipeline)
        upward = np.arange(_first_away(pipeline) * p, v * p)
        order = {Kind.OFFLOAD: upward[::-1], Kind.STEP: upward[::-1], Kind.RELOAD: upward}
        microbatch = {Kind.OFFLOAD: m - 1, Kind.STEP: NONE, Kind.RELOAD: 0}
        return Program.grouped(
            actions=ActionTable.concatenate(
                [
                    compute.actions,
                    *(ActionTable.of(int(k), order[k], microbatch[k]) for k in order),
                ]
            ),
            resource=np.concatenate(
                [
                    compute.resource,
                    *(p + len(ENGINES) * (order[k] % p) + n for n, k in enumerate(order)),
                ]
            ),
        )

    @staticmethod
    def _computations(pipeline: Pipeline) -> TPipe | TRecomp:
        return TPipe() if pipeline.choices.recompute is None else TRecomp()


def _first_away(pipeline: Pipeline) -> int:
    """The first chunk that is off-loaded; as many as the stages named, rounded down."""
    choice = pipeline.choices.state_offload
    away = 0 if choice is None else len(choice.stages) // pipeline.num_ranks
    return pipeline.num_chunks - away
