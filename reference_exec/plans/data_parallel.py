"""Data parallelism: how many replicas there are, and which collective serves which computation.

Each replica runs the whole program on microbatches of its own: of a batch of D m samples replica d
has d m ... d m + m - 1. The replicas of one rank are the members of a group; they issue their
collectives in the order of the one program, so they cannot differ by what a schedule says, and
where they differ all the same the header of each collective tells (``replica_collectives``).

In a sharded pipeline a visit is served by the UNSHARD of its number and its gradient summed by the
REDUCE_GRAD of its number (``theory.pipelines.sharding``). Another pipeline gets the collectives of
``theory.pipelines.replication`` (``replicated``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from bubbleproof.reference_exec.models.footprint import parameter_tensors
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.shard_layout import StageLayout
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.extension import StretchedChange
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.replication import PlacedCollective, Use, memory_changes, uses_of
from bubbleproof.theory.pipelines.sharding import (
    ADDERS,
    READERS,
    Collective,
    Sharding,
    collectives,
    visits,
)

Holder = tuple[int, int]  # (stage, rank)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataParallel:
    """The collectives of a plan.

    Without ``levels`` replicas are whole: their REDUCE_GRADs sum gradients and nothing is sharded.
    ``gathers`` has the number of the UNSHARD that brings level 3 for a computation, ``reductions``
    that of the REDUCE_GRAD that takes levels 2 and 3 of what it adds; ``first`` and ``last`` by
    (stage, rank) the first UNSHARD, which brings all levels, and the last REDUCE_GRAD, which takes
    all. Where the problem frees or reduces less often these have one number for all. ``homes`` is
    the rank of each collective; ``placed`` are those that the problem had not, ``layouts`` those of
    every stage that is sharded.
    """

    replicas: int
    levels: ZeroLevels | None
    gathers: Mapping[Use, int]
    reductions: Mapping[Use, int]
    first: Mapping[Holder, int]
    last: Mapping[Holder, int]
    homes: Mapping[Action, int]
    placed: tuple[PlacedCollective, ...] = ()
    layouts: Mapping[int, StageLayout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ValueError(f"data parallelism must have 1 replica or more, got {self.replicas}")

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        sharding: Sharding,
        spec: ModelSpec,
        replicas: int,
        levels: ZeroLevels | None,
    ) -> DataParallel:
        """A pipeline's own collectives, as sharded; without levels all parameters have the highest.

        Raises ``ValueError`` for no replica, and for a level that they are too few for.
        """
        levels = ZeroLevels(default=sharding.zero) if levels is None else levels
        if levels.highest > sharding.zero:
            raise ValueError(
                f"ZeRO level {levels.highest} needs more collectives than the schedule has; "
                f"they are enough for level {sharding.zero}"
            )
        listed = visits(pipeline.stage_ranks, *sharding.sequences(pipeline.num_microbatches))
        found = [_of_visit(c, pipeline) for c in collectives(listed, sharding)]
        layouts = layouts_of(spec, pipeline.num_stages, levels, replicas)
        return replace(cls.serving(found, replicas, levels), layouts=layouts)

    @classmethod
    def serving(
        cls,
        placed: list[PlacedCollective],
        replicas: int,
        levels: ZeroLevels | None,
    ) -> DataParallel:
        """The collectives by what they serve. Raises ``ValueError`` for no replica."""
        numbers: dict[Kind, dict[Use, int]] = {Kind.UNSHARD: {}, Kind.REDUCE_GRAD: {}}
        first: dict[Holder, int] = {}
        last: dict[Holder, int] = {}
        for c in placed:
            holder = (c.stage, c.rank)
            if c.kind is Kind.UNSHARD:
                first[holder] = min(c.number, first.get(holder, c.number))
            elif c.kind is Kind.REDUCE_GRAD:
                last[holder] = max(c.number, last.get(holder, 0))
            if c.kind in numbers:
                numbers[c.kind] |= dict.fromkeys(c.uses, c.number)
        return cls(
            replicas=replicas,
            levels=levels,
            gathers=numbers[Kind.UNSHARD],
            reductions=numbers[Kind.REDUCE_GRAD],
            first=first,
            last=last,
            homes={c.action: c.rank for c in placed},
        )

    @property
    def is_sharded(self) -> bool:
        """Whether each member keeps a shard, and steps on it."""
        return self.levels is not None

    def copy(self, kind: Kind, key: tuple[int, int, int]) -> int:
        """The UNSHARD that brings level 3 for a computation; 0 where there is no level 3."""
        return self.gathers.get(Use(kind, *key), 0)

    def reduction(self, kind: Kind, key: tuple[int, int, int], rank: int, part: int = NONE) -> int:
        """The REDUCE_GRAD that takes levels 2 and 3 of what a computation adds."""
        number = self.reductions.get(Use(kind, *key, part))
        return self.last.get((key[0], rank), 0) if number is None else number

    def changes(self, problem: Problem) -> list[StretchedChange]:
        """The bytes that collectives put into a problem (``placed``) acquire and release in it."""
        if not self.layouts or not self.placed:
            return []
        return memory_changes(problem, self.placed, *self.gathered_and_summed())

    def gathered_and_summed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The bytes of each stage's gathered parameters, and of its summed gradients."""
        layouts = self.layouts.values()
        return tuple(each.bytes(3) for each in layouts), tuple(each.bytes(2, 3) for each in layouts)

    def rooms(self, orders: Sequence[Sequence[Action]]) -> dict[Action, int]:
        """The bytes of the gradient for which each computation of the orders makes room."""
        if not self.layouts:
            return {}
        found: dict[Action, int] = {}
        for rank, order in enumerate(orders):
            opened = set[tuple[int, int]]()
            for action in order:
                for use in uses_of(action):
                    number = self.reduction(use.kind, use[1:4], rank, use.part)
                    if use.kind in ADDERS and (use.stage, number) not in opened:
                        opened.add((use.stage, number))
                        found[action] = self.layouts[use.stage].bytes(2, 3)
        return found


def layouts_of(
    spec: ModelSpec, num_stages: int, levels: ZeroLevels | None, members: int
) -> dict[int, StageLayout]:
    """The layout of every stage, if any is sharded.

    Raises ``ValueError`` for other names, and for a stage without parameters.
    """
    for stage in range(num_stages):
        if not parameter_tensors(spec, stage):
            raise ValueError(
                f"model stage {stage} has no parameters that are trained; replicas "
                "(--data-parallel, --zero) reduce the gradients of every stage: join it to one "
                "that has"
            )
    if levels is None:
        return {}
    found, names = {}, set[str]()
    for stage in range(num_stages):
        shapes = {n: tuple(p.shape) for n, p in Stage(spec, stage).named_parameters()}
        names |= shapes.keys()
        found[stage] = StageLayout.of(shapes, levels, members, spec.element_bytes)
    levels.require_names(names)
    return found


def _of_visit(collective: Collective, pipeline: Pipeline) -> PlacedCollective:
    """A collective of a visit by what it would serve; it runs when the problem says."""
    visit, parts = collective.visit, (NONE,)
    kinds = (Kind.F,) if visit.is_forward else READERS
    if collective.kind is Kind.REDUCE_GRAD:
        kinds = ADDERS
        cut = pipeline.part_ticks[visit.stage] if pipeline.weight_parts else ()
        parts = (NONE, *range(len(cut)))
    samples = product(kinds, range(visit.first, visit.end), range(pipeline.num_slices), parts)
    return PlacedCollective(
        kind=collective.kind,
        stage=visit.stage,
        rank=visit.rank,
        number=collective.slice,
        uses=tuple(Use(kind, visit.stage, j, k, part) for kind, j, k, part in samples),
    )


def in_replicas(
    pipeline: Pipeline, spec: ModelSpec, replicas: int, levels: ZeroLevels | None
) -> tuple[Pipeline, DataParallel]:
    """The pipeline with the bytes of each stage's gathered parameters and summed gradients.

    Raises ``ValueError`` for a pipeline without sharding, and for what its collectives cannot do
    (``DataParallel.of``).
    """
    if (sharding := pipeline.choices.sharding) is None:
        raise ValueError("replicas share the state of a sharded pipeline, got one without sharding")
    parallel = DataParallel.of(pipeline, sharding, spec, replicas, levels)
    parameter, gradient = parallel.gathered_and_summed()
    sized = replace(sharding, parameter=parameter, gradient=gradient)
    return pipeline.with_changes(sharding=sized), parallel
