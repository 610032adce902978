"""Pipelines: the shape of a pipeline-parallel training step, and its Problem.

Symbols: p ranks, m microbatches, v chunks per rank, s slices per sample, stages g = 0..p*v-1.
``theory.pipelines.pipeline_problem`` states the rules of the Problem: dependencies and memory.

A pipeline has every choice fixed (``theory.pipelines.choices``), so the Problem has no optional
task.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from inspect import signature
from typing import Unpack, final

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choices import (
    CHOICES,
    Choices,
    ChoiceValues,
    Flags,
    refuse_clashes,
)
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.links import Boundaries, Link, Links, boundaries, require_link
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, num_downward, stage_ranks
from bubbleproof.theory.pipelines.stage_numbers import (
    ActionTicks,
    Parts,
    PerStage,
    StageColumns,
    Ticks,
    column,
    grid,
    require_sums,
    require_whole,
    stage_numbers,
    stage_ticks,
    weight_rows,
    workspace_rows,
)
from bubbleproof.theory.pipelines.value_types import (
    OF_CHOICES,
    OF_PIPELINE,
    require_types,
    settled,
)

PLAIN = Choices()


@final
@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Pipeline:
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
    where a number is out of range or choices have no meaning together.
    """

    num_ranks: int
    num_microbatches: int
    num_chunks: int
    num_slices: int
    forward: Ticks
    backward: Ticks
    input_backward: Ticks
    weight_backward: Ticks
    activation: PerStage
    released_at_input: PerStage
    weight_workspace: int | Parts
    static: PerStage
    capacity: int | tuple[int | None, ...] | None
    message: PerStage
    latency: int
    bandwidth: int | Fraction | None
    duplex: str
    links: tuple[Link, ...]
    choices: Choices
    unit: str
    memory_unit: str

    def __init__(
        self,
        *,
        num_ranks: int,
        num_microbatches: int,
        num_chunks: int = 1,
        num_slices: int = 1,
        forward: Ticks = 1,
        backward: Ticks = 2,
        input_backward: Ticks = 1,
        weight_backward: Ticks = 1,
        activation: PerStage = 1,
        released_at_input: PerStage = 0,
        weight_workspace: int | Parts = (),
        static: PerStage = 0,
        capacity: int | tuple[int | None, ...] | None = None,
        message: PerStage = 0,
        latency: int = 0,
        bandwidth: int | Fraction | None = None,
        duplex: str = "half",
        links: tuple[Link, ...] = (),
        choices: Choices = PLAIN,
        unit: str = "tick",
        memory_unit: str = "activation",
        **chosen: Unpack[ChoiceValues],
    ) -> None:
        given = {name: settled(value) for name, value in locals().items()}
        require_types(given, OF_PIPELINE)
        if unknown := chosen.keys() - {*CHOICES}:
            raise TypeError(f"a Pipeline has no field {min(unknown)}")
        values = {name: settled(getattr(choices, name)) for name in CHOICES}
        values |= {name: settled(value) for name, value in chosen.items()}
        require_types(values, OF_CHOICES)
        given["choices"] = Choices(**values)  # type: ignore[arg-type]  # their types are checked
        for field in fields(self):
            object.__setattr__(self, field.name, given[field.name])
        self._check()

    def _check(self) -> None:
        for name in ("num_ranks", "num_microbatches", "num_chunks", "num_slices"):
            require_whole(name, getattr(self, name), minimum=1)
        self._check_size()
        ranks = self.stage_ranks
        if len(ranks) != self.num_stages or set(ranks) != set(range(self.num_ranks)):
            raise ValueError(
                f"placement must give each of {self.num_stages} stages a rank and every rank "
                f"0..{self.num_ranks - 1} a stage, got {ranks}"
            )
        self._normalize()
        if self.split_backward is not False:
            self._check_size(2 + int(self.num_parts.max()))
        self._check_links()
        self._check_memory()
        if not isinstance(self.split_backward, bool):
            shape = {len(row) for row in self.split_backward}
            if len(self.split_backward) != self.num_stages or shape != {self.num_microbatches}:
                raise ValueError(
                    f"split_backward must be one flag or {self.num_stages} rows (stages) of "
                    f"{self.num_microbatches} flags (microbatches)"
                )
        refuse_clashes(
            self.choices, num_microbatches=self.num_microbatches, num_slices=self.num_slices
        )

    def _normalize(self) -> None:
        """Bring every number per stage to one form, so that equal pipelines compare equal."""
        stages, slices = self.num_stages, self.num_slices
        for name, minimum in _PER_STAGE.items():
            value = stage_numbers(name, getattr(self, name), num_stages=stages, minimum=minimum)
            object.__setattr__(self, name, value)
        for name in TICKS:
            ticks = stage_ticks(name, getattr(self, name), num_stages=stages, num_slices=slices)
            object.__setattr__(self, name, ticks)
        parts = weight_rows(self.choices.weight_parts, num_stages=stages)
        require_sums(parts, self.ticks.weight_backward)
        if parts != self.choices.weight_parts:
            object.__setattr__(self, "choices", replace(self.choices, weight_parts=parts))
        workspace = workspace_rows(self.weight_workspace, num_parts=self.num_parts.tolist())
        object.__setattr__(self, "weight_workspace", workspace)

    def _check_size(self, tasks_each: int = 2) -> None:
        require_size(
            ranks=self.num_ranks,
            chunks=self.num_chunks,
            microbatches=self.num_microbatches,
            slices=self.num_slices,
            tasks_each=tasks_each,
        )

    def _check_links(self) -> None:
        require_link("", self.latency, self.bandwidth, self.duplex)
        for link in self.links:
            link.require(self.num_ranks)

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
                require_whole("capacity", cap, minimum=0)

    def __repr__(self) -> str:
        """The call that makes it, without what is left at its default."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in (*_PER_STAGE, *TICKS):
            if len(set(values[name])) == 1:  # one number for all stages
                values[name] = values[name][0]
        choices = values.pop("choices")
        values |= {name: getattr(choices, name) for name in CHOICES}
        told = [f"{name}={value!r}" for name, value in values.items() if value != _DEFAULTS[name]]
        return f"Pipeline({', '.join(told)})"

    @property
    def placement(self) -> str | tuple[int, ...]:
        return self.choices.placement

    @property
    def split_backward(self) -> Flags:
        return self.choices.split_backward

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        return self.choices.overlaps

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
    def all_links(self) -> Links:
        """The links between any two ranks."""
        return Links(
            latency=self.latency, bandwidth=self.bandwidth, duplex=self.duplex, named=self.links
        )

    @property
    def boundaries(self) -> Boundaries:
        """What messages between stages take on their links."""
        message = tuple(column(self.message).tolist())
        return boundaries(self.all_links, self.rank_grid, message)

    @property
    def per_stage(self) -> StageColumns:
        """The memory of each stage as columns of length ``num_stages``."""
        return StageColumns(
            activation=column(self.activation),
            released=column(self.released_at_input),
            static=column(self.static),
        )

    @property
    def ticks(self) -> ActionTicks:
        """The ticks of each action as tables of shape (num_stages, num_slices)."""
        return ActionTicks(
            **{name: grid(getattr(self, name), num_slices=self.num_slices) for name in TICKS}
        )

    @property
    def num_parts(self) -> Ints:
        """How many tasks a W of each stage is, shape (num_stages,): its parts, or 1 where whole."""
        sizes = [max(1, len(row)) for row in self.weight_parts]
        return np.array(sizes or [1] * self.num_stages, dtype=np.int64)

    @property
    def weight_parts(self) -> tuple[tuple[int, ...], ...]:
        """The ticks of the parts of W, a row per stage; no rows where every W is whole."""
        return self.choices.weight_parts  # type: ignore[return-value]  # brought to this form at the start

    @property
    def workspace(self) -> tuple[tuple[int, ...], ...]:
        """``weight_workspace``, a row per stage; no rows where nothing is held."""
        return self.weight_workspace  # type: ignore[return-value]  # brought to this form at the start

    def with_whole_weights(self) -> Pipeline:
        """The pipeline in which no W is cut; it holds what the largest of its parts does."""
        largest = tuple((max(row),) for row in self.workspace)
        return self.with_changes(weight_parts=(), weight_workspace=largest)

    def with_changes(self, **changes: object) -> Pipeline:
        """A copy with some fields changed, checked anew."""
        return replace(self, **changes)  # type: ignore[arg-type]  # any field may change

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory of this training step."""
        return problem_of(self)


TICKS = ("forward", "backward", "input_backward", "weight_backward")
_PER_STAGE: dict[str, int | None] = {
    "activation": 0,
    "released_at_input": None,
    "static": 0,
    "message": 0,
}
_DEFAULTS: dict[str, object] = {
    **{name: given.default for name, given in signature(Pipeline.__init__).parameters.items()},
    **{field.name: field.default for field in fields(Choices)},
}
