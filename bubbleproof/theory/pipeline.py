"""Pipelines: the shape of a pipeline-parallel training step, and the Problem it poses.

Symbols: p ranks, m microbatches, v chunks per rank, s slices per sample, stages g = 0..p*v-1.
This module is the one place that states the rules of a training step (DESIGN section 3):

Dependencies
    F(j,k,g) after F(j,k,g-1) and F(j,k-1,g);
    B or I (j,k,g) after F(j,k,g), after B/I(j,k,g+1) and after B/I(j,k+1,g);
    W(j,k,g) after I(j,k,g). An edge between ranks lags by the latency of the link.
Memory, per action of stage g in units of ``memory_unit``
    a full backward holds ``activation[g]`` from the start of F to the end of B;
    a split backward holds ``activation[g]`` from the start of F; at the end of I it gives back
    ``released_at_input[g]``, and the rest at the end of W. Where I leaves *more* behind than it
    found (weight-gradient residuals above the activation), ``released_at_input`` is negative and
    the difference is acquired at the start of I.
    ``static[g]`` (weights, optimizer state) is part of the base load of every rank that holds g.

A pipeline has every choice fixed: what is split is a field, so the Problem has no optional task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.theory.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.placement import BIDIRECTIONAL, num_downward, stage_ranks
from bubbleproof.theory.problem import Edges, MemoryEvents, Occupancy, Problem, Resource, Store

PerStage = int | Sequence[int]
Overlap = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The connection between two ranks, in both directions: ``latency`` ticks per message."""

    ranks: tuple[int, int]
    latency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A training step of ``num_ranks`` x ``num_chunks`` stages over ``num_microbatches`` samples.

    ``forward``, ``backward`` (full), ``input_backward`` (I) and ``weight_backward`` (W) are ticks
    of one action, given once or per stage; ``activation``, ``released_at_input`` and ``static`` are
    memory units, likewise; ``capacity`` is the memory of each rank, given once, per rank, or None.
    ``placement`` is ``loop``, ``wave``, ``bidirectional`` or the rank of each stage.
    ``split_backward`` is one choice for all or a row per stage with one flag per microbatch.
    ``latency`` holds for every pair of ranks that ``links`` does not name. ``overlaps`` lists pairs
    ((stage, microbatch) of an F, (stage, microbatch) of a B) that run as one task of the summed
    duration.

    Raises ``ValueError`` naming the field, the rule and the value when a number is out of range.
    """

    num_ranks: int
    num_microbatches: int
    num_chunks: int = 1
    num_slices: int = 1
    placement: str | tuple[int, ...] = "loop"
    split_backward: bool | tuple[tuple[bool, ...], ...] = False
    forward: PerStage = 1
    backward: PerStage = 2
    input_backward: PerStage = 1
    weight_backward: PerStage = 1
    latency: int = 0
    links: tuple[Link, ...] = ()
    activation: PerStage = 1
    released_at_input: PerStage = 0
    static: PerStage = 0
    capacity: int | tuple[int | None, ...] | None = None
    overlaps: tuple[Overlap, ...] = ()
    unit: str = "tick"
    memory_unit: str = "activation"

    def __post_init__(self) -> None:
        for name in ("num_ranks", "num_microbatches", "num_chunks", "num_slices"):
            _require(name, getattr(self, name), minimum=1)
        ranks = self.stage_ranks
        if len(ranks) != self.num_stages or set(ranks) != set(range(self.num_ranks)):
            raise ValueError(
                f"placement must give each of {self.num_stages} stages a rank and every rank "
                f"0..{self.num_ranks - 1} a stage, got {ranks}"
            )
        for name, minimum in _PER_STAGE.items():
            object.__setattr__(self, name, self._per_stage(name, minimum))
        self._check_links()
        self._check_memory()
        if not isinstance(self.split_backward, bool):
            shape = {len(row) for row in self.split_backward}
            if len(self.split_backward) != self.num_stages or shape != {self.num_microbatches}:
                raise ValueError(
                    f"split_backward must be one flag or {self.num_stages} rows (stages) of "
                    f"{self.num_microbatches} flags (microbatches)"
                )

    def _check_links(self) -> None:
        _require("latency", self.latency, minimum=0)
        for link in self.links:
            _require(f"latency of link {link.ranks}", link.latency, minimum=0)
            if min(link.ranks) < 0 or max(link.ranks) >= self.num_ranks or len(set(link.ranks)) < 2:
                raise ValueError(
                    f"a link joins two different ranks of 0..{self.num_ranks - 1}, got {link.ranks}"
                )

    def _check_memory(self) -> None:
        for released, held in zip(self.per_stage.released, self.per_stage.activation, strict=True):
            if released > held:
                raise ValueError(f"released_at_input ({released}) exceeds activation ({held})")
        caps = self.capacity if isinstance(self.capacity, tuple) else (self.capacity,)
        if len(caps) not in (1, self.num_ranks):
            raise ValueError(
                f"capacity must be one number or one per rank ({self.num_ranks}), got {len(caps)}"
            )
        for cap in caps:
            if cap is not None:
                _require("capacity", cap, minimum=0)

    def _per_stage(self, name: str, minimum: int | None) -> tuple[int, ...]:
        given = getattr(self, name)
        values = (given,) * self.num_stages if isinstance(given, int) else tuple(given)
        if len(values) != self.num_stages:
            raise ValueError(
                f"{name} must be one number or one per stage ({self.num_stages}), got {len(values)}"
            )
        for value in values:
            _require(name, value, minimum=minimum)
        return values

    @property
    def num_stages(self) -> int:
        return self.num_ranks * self.num_chunks

    @property
    def stage_ranks(self) -> tuple[int, ...]:
        """The rank of each stage, in stage order, for downward microbatches where it has two."""
        if isinstance(self.placement, tuple):
            return self.placement
        return stage_ranks(self.placement, num_ranks=self.num_ranks, num_chunks=self.num_chunks)

    @property
    def is_bidirectional(self) -> bool:
        """Whether stages are held twice and part of the microbatches run them upward."""
        return self.placement == BIDIRECTIONAL

    @property
    def rank_grid(self) -> Ints:
        """The rank of each stage for each microbatch, shape (num_stages, num_microbatches)."""
        down = np.array(self.stage_ranks)[:, None]
        upward = np.arange(self.num_microbatches) >= num_downward(self.num_microbatches)
        if not self.is_bidirectional:
            upward[:] = False
        return np.where(upward, self.num_ranks - 1 - down, down)

    @property
    def per_stage(self) -> StageColumns:
        """The per-stage numbers as columns of length ``num_stages``."""
        return StageColumns(
            forward=_column(self.forward),
            backward=_column(self.backward),
            input_backward=_column(self.input_backward),
            weight_backward=_column(self.weight_backward),
            activation=_column(self.activation),
            released=_column(self.released_at_input),
            static=_column(self.static),
        )

    def with_changes(self, **changes: object) -> Pipeline:
        """A copy with some fields changed, checked anew."""
        return replace(self, **changes)  # type: ignore[arg-type]  # any field may change

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory of this training step."""
        return _ProblemBuilder(self).build()


_PER_STAGE: dict[str, int | None] = {
    "forward": 0,
    "backward": 0,
    "input_backward": 0,
    "weight_backward": 0,
    "activation": 0,
    "released_at_input": None,
    "static": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageColumns:
    """A pipeline's per-stage numbers as int64 columns, shape (num_stages,)."""

    forward: Ints
    backward: Ints
    input_backward: Ints
    weight_backward: Ints
    activation: Ints
    released: Ints
    static: Ints


def _column(values: PerStage) -> Ints:
    return np.atleast_1d(np.asarray(values, dtype=np.int64))


def _require(name: str, value: int, *, minimum: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value}")


class _ProblemBuilder:
    """Lays the tasks of a pipeline out as grids [stage, microbatch, slice] of task numbers."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.columns = pipeline.per_stage
        self.ranks = pipeline.rank_grid
        shape = (pipeline.num_stages, pipeline.num_microbatches, pipeline.num_slices)
        flags: Bools = np.atleast_2d(np.asarray(pipeline.split_backward, dtype=np.bool_))
        self.split: Bools = np.broadcast_to(flags[:, :, None], shape)
        size = int(np.prod(shape))
        self.forward = np.arange(size).reshape(shape)
        self.backward = self.forward + size  # B where full, I where split
        self.weight = np.full(shape, NONE)
        self.weight[self.split] = 2 * size + np.arange(int(self.split.sum()))
        self.num_tasks = 2 * size + int(self.split.sum())

    def build(self) -> Problem:
        pipeline, columns = self.pipeline, self.columns
        stage, microbatch, slice_ = np.indices(self.forward.shape)
        split = self.split
        actions = ActionTable.concatenate(
            [
                ActionTable.of(int(Kind.F), stage, microbatch, slice_),
                ActionTable.of(np.where(split, Kind.I, Kind.B), stage, microbatch, slice_),
                ActionTable.of(int(Kind.W), stage[split], microbatch[split], slice_[split]),
            ]
        )
        back = np.where(split, columns.input_backward[stage], columns.backward[stage])
        duration = np.concatenate(
            [columns.forward[stage].ravel(), back.ravel(), columns.weight_backward[stage[split]]]
        )
        task = np.arange(self.num_tasks)
        problem = Problem(
            resources=tuple(Resource(name=f"rank {r}", rank=r) for r in range(pipeline.num_ranks)),
            actions=actions,
            duration=duration,
            occupancy=Occupancy(task=task, resource=self.ranks[actions.stage, actions.microbatch]),
            edges=self._edges(),
            stores=self._stores(),
            events=self._events(),
            unit=pipeline.unit,
            memory_unit=pipeline.memory_unit,
        )
        return fuse(problem, pipeline.overlaps) if pipeline.overlaps else problem

    def _edges(self) -> Edges:
        forward, backward = self.forward, self.backward
        lag = self._boundary_lags()[:, :, None]
        split = self.split
        parts = [
            (forward[:-1], forward[1:], lag),
            (forward[:, :, :-1], forward[:, :, 1:], 0),
            (forward, backward, 0),
            (backward[1:], backward[:-1], lag),
            (backward[:, :, 1:], backward[:, :, :-1], 0),
            (backward[split], self.weight[split], 0),
        ]
        return Edges(
            before=np.concatenate([before.ravel() for before, _, _ in parts]),
            after=np.concatenate([after.ravel() for _, after, _ in parts]),
            lag=np.concatenate([(np.zeros_like(b) + lag).ravel() for b, _, lag in parts]),
        )

    def _boundary_lags(self) -> Ints:
        """The latency between stages g and g+1, shape (num_stages - 1, num_microbatches)."""
        p = self.pipeline.num_ranks
        latency = np.full((p, p), self.pipeline.latency)
        for link in self.pipeline.links:
            latency[link.ranks] = latency[link.ranks[::-1]] = link.latency
        np.fill_diagonal(latency, 0)
        result: Ints = latency[self.ranks[:-1], self.ranks[1:]]
        return result

    def _stores(self) -> tuple[Store, ...]:
        pipeline = self.pipeline
        caps = pipeline.capacity
        base = self._static_loads()
        return tuple(
            Store(
                name=f"memory of rank {r}",
                base=base[r],
                capacity=caps[r % len(caps)] if isinstance(caps, tuple) else caps,
            )
            for r in range(pipeline.num_ranks)
        )

    def _static_loads(self) -> list[int]:
        """What the stages of each rank weigh, each replica once, shape (num_ranks,)."""
        loads = [0] * self.pipeline.num_ranks
        down = self.pipeline.stage_ranks
        for rank, weight in zip(down, self.columns.static.tolist(), strict=True):
            homes = {rank, len(loads) - 1 - rank} if self.pipeline.is_bidirectional else {rank}
            for home in homes:
                loads[home] += weight
        return loads

    def _events(self) -> MemoryEvents:
        stage, microbatch, _ = np.indices(self.forward.shape)
        split, released = self.split, self.columns.released[stage]
        held = self.columns.activation[stage]
        at_backward = np.where(split, np.maximum(released, 0), held)
        residual = np.where(split, np.maximum(-released, 0), 0)
        rank = self.ranks[stage, microbatch]
        rows = [  # (task, at the end?, delta, rank)
            (self.forward.ravel(), False, held.ravel(), rank.ravel()),
            (self.backward.ravel(), True, -at_backward.ravel(), rank.ravel()),
            (self.backward.ravel(), False, residual.ravel(), rank.ravel()),
            (self.weight[split], True, (released - held)[split], rank[split]),
        ]
        task = np.concatenate([row[0] for row in rows])
        delta = np.concatenate([row[2] for row in rows])
        at_end = np.concatenate([np.full(len(row[0]), row[1]) for row in rows])
        store = np.concatenate([row[3] for row in rows])
        kept = delta != 0
        return MemoryEvents(
            task=task[kept], at_end=at_end[kept], store=store[kept], delta=delta[kept]
        )


def fuse(problem: Problem, overlaps: Sequence[Overlap]) -> Problem:
    """The problem with each (F, B) pair joined to one ``OVERLAP_F_B`` task of the summed duration.

    Each element names ((stage, microbatch) of the F, (stage, microbatch) of the B), both on one
    resource and unsliced. The joint task inherits every edge and memory event of both, so all
    inputs must be there when it starts. Raises ``ValueError`` for a pair that is not there or on
    two resources.
    """
    pairs = np.array(overlaps, dtype=np.int64).reshape(len(overlaps), 4)
    first = problem.locate(ActionTable.of(int(Kind.F), pairs[:, 0], pairs[:, 1]))
    second = problem.locate(ActionTable.of(int(Kind.B), pairs[:, 2], pairs[:, 3]))
    unfit = (first == NONE) | (second == NONE)
    unfit |= problem.rank_of_task[first] != problem.rank_of_task[second]
    if unfit.any():
        (f, i), (b, j) = overlaps[int(np.argmax(unfit))]
        raise ValueError(f"overlap needs {f}F{i} and {b}B{j} as tasks of one rank")
    if len(np.unique(first)) + len(np.unique(second)) < 2 * len(pairs):
        raise ValueError("an action may be part of one overlap only")
    kept = np.ones(problem.num_tasks, dtype=bool)
    kept[second] = False
    number = np.cumsum(kept) - 1
    number[second] = number[first]
    actions, duration = problem.actions, problem.duration.copy()
    kind, partner_stage = actions.kind.copy(), actions.partner_stage.copy()
    partner_microbatch = actions.partner_microbatch.copy()
    kind[first], partner_stage[first] = Kind.OVERLAP_F_B, pairs[:, 2]
    partner_microbatch[first] = pairs[:, 3]
    duration[first] += duration[second]
    fused = replace(
        actions, kind=kind, partner_stage=partner_stage, partner_microbatch=partner_microbatch
    )
    rows, edges, events = kept[problem.occupancy.task], problem.edges, problem.events
    return replace(
        problem,
        actions=fused.take(kept),
        duration=duration[kept],
        occupancy=Occupancy(
            task=number[problem.occupancy.task[rows]], resource=problem.occupancy.resource[rows]
        ),
        edges=replace(edges, before=number[edges.before], after=number[edges.after]),
        events=replace(events, task=number[events.task]),
    )
