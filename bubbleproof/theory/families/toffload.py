"""T-Offload: T-Pipe whose deep chunk is updated by the host, within T-Pipe's own bubbles.

The order of computations is T-Pipe's (T-Recomp's where the pipeline recomputes, which the paper
calls TPipe ALL). Each deep stage g = p..2p-1 brings RELOAD before its first forward, OFFLOAD after
its last backward and STEP after that, each on an engine of its rank
(``theory.pipelines.state_offload``), so no engine has more than one task and their order is given.
A schedule hides them if its makespan is T-Pipe's and the last STEP ends no later.

The command has no parameters for them: RELOAD, OFFLOAD and STEP take the ticks of a deep forward
each, and weights, gradients and optimizer state weigh nothing; ``offloading`` takes other numbers.
With these defaults OFFLOAD and STEP fit the paper's window (Appendix D, equation 6) from p = 3 on.
From p = 6 on that window is several idle stretches of at most 4 tF, with backwards in between.
Source: T-Pipe section 5, Appendix D. Legal range: any p, m; v = 2 only.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.parameters import Parameters
from bubbleproof.theory.families.tpipe import TPipe, TwoChunks
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.actions import NONE, ActionTable, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.state_offload import ENGINES, StateOffload


class TOffload(TwoChunks):
    """T-Pipe with the deep chunk's optimizer step on the host."""

    name = "toffload"
    title = "T-Pipe with T-Offload"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 5, Appendix D"
    adds = frozenset({"state_offload", "recompute"})

    def pipeline(self, params: Parameters) -> Pipeline:
        ticks = params.tF
        return self.offloading(super().pipeline(params), offload=ticks, step=ticks, reload=ticks)

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The deep chunk off-loaded; each transfer and step as long as the longest forward."""
        problem = pipeline.problem()
        ticks = int(problem.duration[problem.actions.is_kind(Kind.F)].max(initial=0))
        return self.offloading(pipeline, offload=ticks, step=ticks, reload=ticks)

    def offloading(self, pipeline: Pipeline, **numbers: int) -> Pipeline:
        """The pipeline with its deep chunk off-loaded; ``numbers`` as in ``StateOffload``."""
        p = pipeline.num_ranks
        choice = StateOffload(stages=tuple(range(p, 2 * p)), **numbers)
        return pipeline.with_changes(state_offload=choice)

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        p = pipeline.num_ranks
        choice = pipeline.choices.state_offload
        if choice is None or set(choice.stages) != set(range(p, 2 * p)):
            return (
                f"{self.name} off-loads stages {p}..{2 * p - 1}; make the pipeline with "
                f"family({self.name!r}).offloading(pipeline)"
            )
        computed = pipeline.with_changes(state_offload=None)
        return self._computations(pipeline).refusal(computed)

    def program(self, pipeline: Pipeline) -> Program:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        compute = self._computations(pipeline).program(pipeline)
        rank = np.arange(p)
        kinds = (Kind.OFFLOAD, Kind.STEP, Kind.RELOAD)  # in the order of the engines
        tables = [
            ActionTable.of(int(kind), p + rank, microbatch)
            for kind, microbatch in zip(kinds, (m - 1, NONE, 0), strict=True)
        ]
        engines = [p + len(ENGINES) * rank + k for k in range(len(ENGINES))]
        return Program.grouped(
            actions=ActionTable.concatenate([compute.actions, *tables]),
            resource=np.concatenate([compute.resource, *engines]),
        )

    @staticmethod
    def _computations(pipeline: Pipeline) -> TPipe | TRecomp:
        return TPipe() if pipeline.choices.recompute is None else TRecomp()
