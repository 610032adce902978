"""Data parallelism: how many replicas there are, and which collective serves which microbatch.

Each replica runs the whole program on microbatches of its own: of a batch of D m samples replica d
has d m ... d m + m - 1. The replicas of one rank are the members of a group; they issue their
collectives in the order of the one program, so they cannot differ by what a schedule says, and
where they differ all the same the header of each collective tells (``collectives``).

A visit (``theory.visits``) is served by the UNSHARD of its number and its gradient summed by the
REDUCE_GRAD of its number: that is what the precedences of ``theory.collectives`` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bubbleproof.reference_exec.models import Stage
from bubbleproof.reference_exec.shard_layout import StageLayout
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.zero_levels import ZeroLevels
from bubbleproof.theory.actions import Kind
from bubbleproof.theory.collectives import collectives
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.sharded import ShardedPipeline
from bubbleproof.theory.visits import visits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataParallel:
    """The collectives of a plan.

    ``gathers`` has the number of the UNSHARD that brings level 3 for the F (True) or B (False) of a
    (stage, microbatch); ``reductions`` that of the REDUCE_GRAD that takes levels 2 and 3 of what B
    of a (stage, microbatch) adds; ``last`` that of each stage's last REDUCE_GRAD, which also takes
    level 1. Where the problem frees or reduces less often these have one number for all.
    """

    replicas: int
    levels: ZeroLevels
    gathers: Mapping[tuple[bool, int, int], int]
    reductions: Mapping[tuple[int, int], int]
    last: Mapping[int, int]

    @classmethod
    def of(cls, step: ShardedPipeline, replicas: int, levels: ZeroLevels | None) -> DataParallel:
        """The collectives of a training step; without levels all parameters have the highest.

        Raises ``ValueError`` for no replica, and for a level that the step's collectives are too
        few for.
        """
        zero = step.sharding.zero
        levels = ZeroLevels(default=zero) if levels is None else levels
        if replicas < 1:
            raise ValueError(f"data parallelism must have 1 replica or more, got {replicas}")
        if levels.highest > zero:
            raise ValueError(
                f"ZeRO level {levels.highest} needs more collectives than the schedule has; "
                f"they are enough for level {zero}"
            )
        listed = visits(step.stage_ranks, step.enqueue, step.dequeue)
        gathers: dict[tuple[bool, int, int], int] = {}
        reductions: dict[tuple[int, int], int] = {}
        last: dict[int, int] = {}
        for collective in collectives(listed, step.sharding):
            visit = collective.visit
            for microbatch in range(visit.first, visit.end):
                if collective.kind is Kind.UNSHARD:
                    gathers[visit.is_forward, visit.stage, microbatch] = collective.slice
                elif collective.kind is Kind.REDUCE_GRAD:
                    reductions[visit.stage, microbatch] = collective.slice
            if collective.kind is Kind.REDUCE_GRAD:
                last[visit.stage] = max(collective.slice, last.get(visit.stage, 0))
        return cls(
            replicas=replicas, levels=levels, gathers=gathers, reductions=reductions, last=last
        )

    def copy(self, stage: int, microbatch: int, *, is_forward: bool) -> int:
        """The UNSHARD that brings level 3 for an F or B; 0 where there is no level 3."""
        return self.gathers.get((is_forward, stage, microbatch), 0)

    def reduction(self, stage: int, microbatch: int) -> int:
        """The REDUCE_GRAD that takes levels 2 and 3 of what the B of a microbatch adds."""
        return self.reductions.get((stage, microbatch), self.last[stage])

    def layouts(self, spec: ModelSpec, num_stages: int) -> dict[int, StageLayout]:
        """The layout of every stage. Raises ``ValueError`` for levels of no parameter."""
        found, names = {}, set[str]()
        for stage in range(num_stages):
            shapes = {n: tuple(p.shape) for n, p in Stage(spec, stage).named_parameters()}
            names |= shapes.keys()
            found[stage] = StageLayout.of(shapes, self.levels, self.replicas)
        self.levels.require_names(names)
        return found


def in_replicas(
    step: Pipeline, spec: ModelSpec, replicas: int, levels: ZeroLevels | None
) -> tuple[Pipeline, DataParallel | None]:
    """The step with the bytes of each stage's gathered parameters and summed gradients.

    A step without collectives is one replica's alone. Raises ``ValueError`` where it should be
    more, or sharded.
    """
    if not isinstance(step, ShardedPipeline):
        if replicas != 1 or levels is not None:
            asked = f"{replicas} replicas" if levels is None else f"ZeRO levels {levels}"
            raise ValueError(
                f"replay needs a schedule with collectives (UNSHARD, REDUCE_GRAD) for {asked}; "
                "this one has none"
            )
        return step, None
    parallel = DataParallel.of(step, replicas, levels)
    layouts, element = parallel.layouts(spec, step.num_stages), spec.element_bytes
    stages = range(step.num_stages)
    sharding = replace(
        step.sharding,
        parameter=tuple(layouts[stage].size(3) * element for stage in stages),
        gradient=tuple(layouts[stage].size(2, 3) * element for stage in stages),
    )
    return replace(step, sharding=sharding), parallel


def state_bytes(step: Pipeline, spec: ModelSpec, parallel: DataParallel) -> tuple[int, ...]:
    """The bytes of model state that each process holds all the time, replica by replica."""
    layouts = parallel.layouts(spec, step.num_stages)
    return tuple(
        spec.element_bytes
        * sum(
            layouts[stage].state_size(member)
            for stage, home in enumerate(step.stage_ranks)
            if home == rank
        )
        for member in range(parallel.replicas)
        for rank in range(step.num_ranks)
    )
