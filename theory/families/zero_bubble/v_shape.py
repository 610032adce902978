"""V-shaped building blocks: schedules that repeat one microbatch's pattern, squeezed.

Each rank r holds stage r (chunk 0, going down the V) and stage 2p-1-r (chunk 1, going up). At unit
ticks a rank works 6 ticks per microbatch (F, I, W of two chunks), so a *building block*, the starts
of one microbatch's actions, repeats every 6 ticks, and it fits when the F and I starts of each rank
differ modulo 6. The four passes over the ranks advance by a constant number of ticks per hop: the
slower they go, the longer activations live, and the lifespan divided by 6 is the peak.

*Squeezing* keeps the order of F and I and gives up the clock: W fills the waits, eagerly and within
``limit`` activations (``orders.weight_filling``). It cannot get stuck: take the earliest F or I of
the building blocks' clock that has not run. Its inputs have, and it is next on its rank. An I runs.
An F finds room after the waiting W's, because in that order fewer than ``limit`` microbatches are
between F and I when it comes (``open_at_most``).

Then slides (``families.shortening.slides``) move actions past each other where the run begins and
ends: the paper's Appendix and its authors' generator reorder there too, in another way.

Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024) section 3.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_tasks
from bubbleproof.theory.families.shortening.few_microbatches import improved_order
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.weight_filling import (
    WeightFilling,
    main_lists,
    parts_of_inputs,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline

PERIOD = 6  # unit ticks of one microbatch on a rank: F, I and W of two chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildingBlock:
    """Starts of microbatch 0 at unit ticks, by stage g = 0..2p-1, and the activations allowed.

    ``forward[g]`` and ``backward[g]`` start F and I; ``limit`` bounds a rank's activations.
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    limit: int

    @property
    def num_ranks(self) -> int:
        return len(self.forward) // 2

    def open_at_most(self, rank: int) -> int:
        """The most microbatches, of both chunks, between start of F and end of I on a rank.

        Parameters
        ----------
        rank
            From 0 to p - 1.
        """
        spans = [
            (self.forward[g], self.backward[g] + 1) for g in (rank, 2 * self.num_ranks - 1 - rank)
        ]
        return max(
            sum((now - start) // PERIOD - (now - end) // PERIOD for start, end in spans)
            for now in range(PERIOD)
        )


def v_block(
    num_ranks: int, *, hops: tuple[int, int, int, int], turns: tuple[int, int, int], limit: int
) -> BuildingBlock:
    """The block whose passes F down, F up, I down, I up advance by ``hops`` ticks per rank.

    ``turns`` are the starts of F of chunk 1, I of chunk 1 and I of chunk 0 on rank 0.

    Parameters
    ----------
    num_ranks
        p.
    hops
        Ticks per rank of the passes F down, F up, I down and I up.
    turns
        Ticks at which F of chunk 1, I of chunk 1 and I of chunk 0 start on rank 0.
    limit
        Units that a rank may hold.
    """
    ranks = np.arange(num_ranks)
    f_down, f_up, i_down, i_up = hops
    f_turn, i_turn, i_end = turns
    forward = np.concatenate([f_down * ranks, f_turn - f_up * ranks[::-1]])
    backward = np.concatenate([i_end - i_up * ranks, i_turn + i_down * ranks[::-1]])
    return BuildingBlock(
        forward=tuple(forward.tolist()), backward=tuple(backward.tolist()), limit=limit
    )


class VShape(Family):
    """Two chunks per rank, placed as a V, with split backwards."""

    options = frozenset({"v"})
    default_chunks = 2
    has_two_chunks = True
    placement = "wave"
    is_split = True


class RepeatedBlock(VShape):
    """A building block repeated for every microbatch and squeezed."""

    @abstractmethod
    def block(self, num_ranks: int) -> BuildingBlock:
        """The building block for p ranks.

        Parameters
        ----------
        num_ranks
            p.
        """

    def squeezed(self, pipeline: Pipeline) -> Program:
        """The block repeated for every microbatch, squeezed."""
        return squeezed_order(pipeline, self.block(pipeline.num_ranks))

    def program(self, pipeline: Pipeline) -> Program:
        return improved_order(pipeline, self.squeezed, 1, is_listed=False)


def squeezed_order(pipeline: Pipeline, block: BuildingBlock) -> Program:
    """The block repeated for every microbatch, squeezed at unit ticks."""
    problem = pipeline.problem()
    tasks = main_lists(problem)
    unit = replace(tasks, ticks=[1] * problem.num_tasks, lag=[0] * len(tasks.lag))
    mains = [_sequence(problem, block, rank) for rank in range(problem.num_ranks)]
    run = WeightFilling(unit, mains, parts_of_inputs(problem), block.limit)
    if not run.run():
        raise ValueError("the block cannot be squeezed: no rank has an action to run next")
    return program_of_tasks(problem, run.orders)


def _sequence(problem: Problem, block: BuildingBlock, rank: int) -> list[int]:
    """The F and I tasks of a rank in the order of the repeated block."""
    actions = problem.actions
    tasks = np.flatnonzero((problem.rank_of_task == rank) & actions.is_kind(Kind.F, Kind.I))
    starts = np.array([block.forward, block.backward])
    is_backward = (actions.kind[tasks] == Kind.I).astype(np.int64)
    clock = starts[is_backward, actions.stage[tasks]] + PERIOD * actions.microbatch[tasks]
    ordered: list[int] = tasks[np.argsort(clock, kind="stable")].tolist()
    return ordered
