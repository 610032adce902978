"""AdaPipe: 1F1B whose ranks hold as many layers, and recompute as many of them, as suits each.

A stage of the pipeline is a layer; ranks hold blocks of layers in turn, p v in all (v a rank on
average), and the recomputed ones are made again just in time (``block_orders``). Which layers a
rank holds and recomputes is ``adaptive_plan``'s: the partition of the least time of 1F1B of which
no rank holds more than its memory. The order depends on the shape and on these choices alone.

f is the memory: the most layers' activations that a rank may hold, half of the v p that 1F1B holds
on rank 0 unless given (T-Pipe compares at T-Recomp's memory, section 6.3). ``planned`` takes the
capacity and the numbers of any pipeline whose stages are layers in turn.

Source: Sun et al., "AdaPipe: Optimizing Pipeline Parallelism with Adaptive Recomputation and
Partitioning" (ASPLOS 2024), by its abstract and by T-Pipe's sections 2.4 and 6.3; ``adaptive_plan``
says what is ours. Legal range: any p, m, v and f.
"""

from __future__ import annotations

from itertools import pairwise

from bubbleproof.theory.families.adaptive_plan import Layer, adaptive_plan
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.block_orders import (
    block_program,
    even_blocks,
    recomputed_just_in_time,
)
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class AdaPipe(Family):
    """1F1B over blocks of layers, uneven and recomputed by rank."""

    name = "adapipe"
    title = "AdaPipe"
    source = "AdaPipe (ASPLOS 2024), abstract; T-Pipe sections 2.4 and 6.3"
    options = frozenset({"v", "f"})
    default_chunks = 2
    adds = frozenset({"recompute"})

    def places(self, pipeline: Pipeline) -> tuple[int, ...]:
        """As they lie where that is in blocks, and in even blocks else."""
        ranks = pipeline.stage_ranks
        is_in_blocks = all(a <= b for a, b in pairwise(ranks))
        return ranks if is_in_blocks else even_blocks(pipeline.num_ranks, pipeline.num_chunks)

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        made = super().pipeline(params)
        return self.planned(made, capacity=params.f or -(-made.num_stages // 2))

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline as AdaPipe would cut it, within its own capacity; as it is if none fits."""
        try:
            return self.planned(pipeline, capacity=pipeline.least_capacity)
        except ValueError:
            return pipeline

    def planned(self, pipeline: Pipeline, *, capacity: int | None) -> Pipeline:
        """The pipeline with its stages cut into blocks and recomputed so that every rank fits.

        Parameters
        ----------
        capacity
            Units of memory of every rank; None for no limit.

        Raises
        ------
        ValueError
            Where no partition does.
        """
        stages, ticks = range(pipeline.num_stages), pipeline.ticks
        numbers = pipeline.per_stage
        plan = adaptive_plan(
            [
                Layer(
                    forward=int(ticks.forward[g].sum()),
                    backward=int(ticks.backward[g].sum()),
                    again=int(ticks.forward[g].sum()),
                    activation=int(numbers.activation[g]),
                    static=int(numbers.static[g]),
                )
                for g in stages
            ],
            ranks=pipeline.num_ranks,
            microbatches=pipeline.num_microbatches,
            capacity=capacity,
        )
        if plan is None:
            raise ValueError(
                f"adapipe: no partition of {pipeline.num_stages} layers on {pipeline.num_ranks} "
                f"ranks fits {capacity} units a rank, all recomputed; give more memory"
            )
        cut = pipeline.with_changes(placement=plan.placement, recompute=None, waits=())
        return recomputed_just_in_time(cut, plan.recomputed)

    def ours(self, pipeline: Pipeline) -> str | None:
        del pipeline
        return "The paper is known by its abstract; its recurrences are bubbleproof's."

    def program(self, pipeline: Pipeline) -> Program:
        return block_program(pipeline)
