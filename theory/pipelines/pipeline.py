"""Pipelines: the shape of a pipeline-parallel training step, and its Problem.

Symbols: p ranks, m microbatches, v chunks per rank, s slices per sample, stages g = 0..p*v-1.
A pipeline has every choice fixed (``theory.pipelines.choices``), so the Problem has no optional
task.

``problem_of`` is the one place where a pipeline becomes tasks. First those of the computation, by
the rules of a training step (docs/guide/design.md §2) below; then what is chosen adds its own, each
by the text of its module: ``transfers``, ``activation_offload``, ``recompute``, ``state_offload``,
``sharding``; last, overlapped pairs become one task each (``overlaps``).

Dependencies
    F(j,k,g) after F(j,k,g-1) and F(j,k-1,g);
    B or I (j,k,g) after F(j,k,g), after B/I(j,k,g+1) and after B/I(j,k+1,g);
    W(j,k,g) after I(j,k,g). Where W is cut into parts, the first comes after I and each after the
    one before it: single GEMMs wait in a queue (MEPipe section 5), and no two need each other.
    An edge between ranks lags by what its message takes on the link, and by the latency; what the
    message occupies is a task beside (``links``).
Memory, per action of stage g in units of ``memory_unit``
    a full backward holds ``activation[g]`` from the start of F to the end of B;
    a split backward holds ``activation[g]`` from the start of F; at the end of I it gives back
    ``released_at_input[g]``, and the rest at the end of W (of its last part). Where I leaves *more*
    behind than it found (weight-gradient residuals above the activation), ``released_at_input`` is
    negative and the difference is acquired at the start of I.
    Each part of W holds its ``weight_workspace`` from its start to its end; a full backward, which
    runs the same GEMMs one after the other, holds the largest of its stage.
    ``static[g]`` (weights, optimizer state) is part of the base load of every rank that holds g.
"""

from __future__ import annotations

from functools import lru_cache
from typing import final

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.pipelines.choices import KINDS, changed_by
from bubbleproof.theory.pipelines.extension import StretchedChange, more_events
from bubbleproof.theory.pipelines.links import with_messages
from bubbleproof.theory.pipelines.pipeline_statement import PipelineStatement
from bubbleproof.theory.pipelines.stage_numbers import padded


def problem_of(pipeline: PipelineStatement) -> Problem:
    """The tasks, resources, precedences and memory of a training step with all its choices.

    Raises ``ValueError`` for a choice that names what the pipeline does not have.
    """
    return changed_by(_ProblemBuilder(pipeline).build(), pipeline.choices, pipeline.setting)


class _ProblemBuilder:
    """Lays the tasks of a pipeline out as grids [stage, microbatch, slice] of task numbers."""

    def __init__(self, pipeline: PipelineStatement) -> None:
        self.pipeline = pipeline
        self.columns, self.ticks = pipeline.per_stage, pipeline.ticks
        self.ranks, self.between = pipeline.rank_grid, pipeline.boundaries
        shape = (pipeline.num_stages, pipeline.num_microbatches, pipeline.num_slices)
        flags: Bools = np.atleast_2d(np.asarray(pipeline.split_backward, dtype=np.bool_))
        self.split: Bools = np.broadcast_to(flags[:, :, None], shape)
        self.indices = np.indices(shape)
        size = self.indices[0].size
        self.forward = np.arange(size).reshape(shape)
        self.backward = self.forward + size  # B where full, I where split
        self._number_weights(2 * size)

    def _number_weights(self, first: int) -> None:
        """Weight tasks ``first``, ``first + 1``, ...: the parts of one W stand side by side.

        ``weight`` is a grid of the first part of each W and ``last_weight`` of the last;
        ``weight_of`` tells for each weight task which of the split backwards it belongs to, and
        ``part`` which part it is (``NONE`` where W is whole).
        """
        parts = np.broadcast_to(self.pipeline.num_parts[:, None, None], self.split.shape)
        sizes = parts[self.split]
        ends = np.cumsum(sizes)
        self.weight, self.last_weight = (np.full(self.split.shape, NONE) for _ in range(2))
        self.weight[self.split] = first + ends - sizes
        self.last_weight[self.split] = first + ends - 1
        self.weight_of = np.repeat(np.arange(len(sizes)), sizes)
        self.part = np.arange(len(self.weight_of)) - (ends - sizes)[self.weight_of]
        self.num_tasks = first + len(self.weight_of)

    def build(self) -> Problem:
        pipeline, split, ticks = self.pipeline, self.split, self.ticks
        stage, microbatch, slice_ = self.indices
        w_stage, w_microbatch, w_slice = self.indices[:, split][:, self.weight_of]
        is_cut = np.array([bool(row) for row in pipeline.part_ticks] or [False] * len(split))
        part = np.where(is_cut[w_stage], self.part, NONE)
        actions = ActionTable.concatenate(
            [
                ActionTable.of(int(Kind.F), stage, microbatch, slice_),
                ActionTable.of(np.where(split, Kind.I, Kind.B), stage, microbatch, slice_),
                ActionTable.of(int(Kind.W), w_stage, w_microbatch, w_slice, part),
            ]
        )
        there = ticks.forward[stage, slice_]
        back = np.where(split, ticks.input_backward[stage, slice_], ticks.backward[stage, slice_])
        weights = self._weight_ticks(w_stage, w_slice, part)
        task = np.arange(self.num_tasks)
        problem = Problem(
            resources=tuple(Resource(name=f"rank {r}", rank=r) for r in range(pipeline.num_ranks)),
            actions=actions,
            duration=np.concatenate([there.ravel(), back.ravel(), weights]),
            occupancy=Occupancy(task=task, resource=self.ranks[actions.stage, actions.microbatch]),
            edges=self._edges(),
            stores=self._stores(),
            events=self._events(),
            unit=pipeline.unit,
            memory_unit=pipeline.memory_unit,
        )
        return with_messages(problem, self.forward, self.backward, self.between)

    def _weight_ticks(self, stage: Ints, slice_: Ints, part: Ints) -> Ints:
        """The ticks of each weight task."""
        ticks = self.ticks.weight_backward[stage, slice_]
        if not self.pipeline.part_ticks:
            return ticks
        return np.where(part == NONE, ticks, padded(self.pipeline.part_ticks)[stage, part])

    def _edges(self) -> Edges:
        forward, backward = self.forward, self.backward
        lag = (self.between.ticks + self.between.latency)[:, :, None]
        split, later = self.split, np.flatnonzero(self.part > 0) + 2 * forward.size
        parts = [
            (forward[:-1], forward[1:], lag),
            (forward[:, :, :-1], forward[:, :, 1:], 0),
            (forward, backward, 0),
            (backward[1:], backward[:-1], lag),
            (backward[:, :, 1:], backward[:, :, :-1], 0),
            (backward[split], self.weight[split], 0),
            (later - 1, later, 0),
        ]
        return Edges(
            before=np.concatenate([before.ravel() for before, _, _ in parts]),
            after=np.concatenate([after.ravel() for _, after, _ in parts]),
            lag=np.concatenate([(np.zeros_like(b) + lag).ravel() for b, _, lag in parts]),
        )

    def _stores(self) -> tuple[Store, ...]:
        each = zip(self._static_loads(), self.pipeline.capacities, strict=True)
        return tuple(
            Store(name=f"memory of rank {r}", base=base, capacity=capacity)
            for r, (base, capacity) in enumerate(each)
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
        split, (stage, microbatch, _) = self.split, self.indices
        released, held = self.columns.released[stage], self.columns.activation[stage]
        at_backward = np.where(split, np.maximum(released, 0), held)
        residual = np.where(split, np.maximum(-released, 0), 0)
        rank = self.ranks[stage, microbatch]
        changes: list[StretchedChange] = [
            (self.forward.ravel(), False, rank.ravel(), held.ravel()),
            (self.backward.ravel(), True, rank.ravel(), -at_backward.ravel()),
            (self.backward.ravel(), False, rank.ravel(), residual.ravel()),
            (self.last_weight[split], True, rank[split], (released - held)[split]),
            *self._workspace(rank),
        ]
        return more_events(MemoryEvents(), changes)

    def _workspace(self, rank: Ints) -> list[StretchedChange]:
        """What weight tasks and full backwards hold while they run, as rows of events."""
        rows, split = self.pipeline.workspace, self.split
        if not rows:
            return []
        table, stage = padded(rows), self.indices[0]
        tasks = [np.arange(self.num_tasks)[2 * split.size :], self.backward[~split]]
        units = [table[stage[split][self.weight_of], self.part], table.max(axis=1)[stage[~split]]]
        ranks = [rank[split][self.weight_of], rank[~split]]
        task, amount, home = (np.concatenate(parts) for parts in (tasks, units, ranks))
        return [(task, False, home, amount), (task, True, home, -amount)]


_LARGE = 4096  # stages times samples and slices: such a Problem takes half a MB or more


@final
class Pipeline(PipelineStatement):
    """A training step of ``num_ranks`` x ``num_chunks`` stages over ``num_microbatches`` samples.

    ``forward``, ``backward`` (full), ``input_backward`` (I) and ``weight_backward`` (W) are ticks
    of one action, given once, per stage, or as rows of one number per slice (see
    ``theory.pipelines.stage_numbers``); the parts of a W add up to its ``weight_backward``.
    ``activation``, ``released_at_input`` and ``static`` are memory units, given once or per stage;
    ``weight_workspace`` is what each GEMM of a W holds while it runs, given once or in rows like
    ``weight_parts``; ``capacity`` is the memory of each rank, given once, per rank, or None.
    ``message`` is what a stage sends on, in memory units, once or per stage; ``latency`` (ticks),
    ``bandwidth`` (memory units per tick, None for no limit) and ``duplex`` (``half`` or ``full``)
    hold for every pair of ranks that ``links`` does not name (``theory.pipelines.links``).

    ``choices`` hold what is decided beyond that. Each may also be given by its own name:
    ``Pipeline(num_ranks=4, num_microbatches=8, split_backward=True)``; what is given by name
    replaces what ``choices`` says.

    Raises ``TypeError`` naming the field, what was expected and what was found, and ``ValueError``
    where a number is out of range, a choice names what is not there, or choices have no meaning
    together: of what is made there is a Problem.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check all of it: where something is chosen, by its problem, which says what there is."""
        PipelineStatement.__post_init__(self)
        if self.is_extreme or any(getattr(self.choices, name) for name in KINDS):
            try:
                self.problem()
            except OverflowError:
                raise ValueError("numbers must add up to less than 2**60") from None

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory of this training step, to be read only.

        Equal pipelines that are asked soon after each other have one object; of large ones the last
        is kept.
        """
        size = self.num_stages * self.num_microbatches * self.num_slices
        return _last(self) if size > _LARGE else _kept(self)


def _made(pipeline: Pipeline) -> Problem:
    """The Problem; whoever writes into one of its columns hears a ``ValueError``."""
    problem = problem_of(pipeline)
    problem.duration.setflags(write=False)
    for columns in (problem.actions, problem.occupancy, problem.edges, problem.events):
        for name in columns.__slots__:
            getattr(columns, name).setflags(write=False)
    return problem


_kept, _last = lru_cache(maxsize=32)(_made), lru_cache(maxsize=1)(_made)
