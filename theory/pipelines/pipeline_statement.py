"""What a training step is stated as: its shape, its numbers, its links and what is chosen.

Symbols: p ranks, m microbatches, v chunks per rank, s slices per sample, stages g = 0..p*v-1.
Every field says in its annotation what it may hold; all is checked and brought to one form when a
statement is made, so that equal ones compare equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import numpy as np

from bubbleproof.theory.model.actions import MAX_SLICE, MAX_STAGE, Ints
from bubbleproof.theory.pipelines.choice_kind import ChoiceSetting
from bubbleproof.theory.pipelines.choices import CHOICES, Choices, refuse_clashes
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.links import (
    DUPLEX,
    Boundaries,
    Link,
    Links,
    boundaries,
    require_link,
)
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
    AtLeast,
    Expectation,
    OneOf,
    beside,
    declared,
    require_types,
    settled,
)

if TYPE_CHECKING:
    _ChoicesByName = Choices  # each choice is a keyword of a Pipeline and an attribute of it
else:
    _ChoicesByName = object

PLAIN = Choices()
HALVES = "input_backward", "weight_backward"
Made = TypeVar("Made")

_NUMBERS = Expectation("a whole number, one per stage, or rows of them")
# What is done with a field goes by its annotation, which is one of these.
Count = Annotated[int, AtLeast(1)]
TicksField = Annotated[Ticks, _NUMBERS, AtLeast(0)]
StageField = Annotated[PerStage, _NUMBERS, AtLeast(0)]
SignedField = Annotated[PerStage, _NUMBERS, AtLeast(None)]


def _with_choices_by_name(cls: type[Made]) -> type[Made]:
    """The class, whose choices may be given by their own names: these replace ``choices``."""
    of_fields: Callable[..., None] = cls.__init__
    defaults = {f.name: f.default for f in fields(cls)}  # type: ignore[arg-type]  # a dataclass

    @wraps(of_fields)
    def init(self: Made, **given: Any) -> None:
        values = {name: settled(given.get(name, default)) for name, default in defaults.items()}
        require_types(values, cls)
        for name in sorted(given.keys() - _DEFAULTS.keys()):
            near = ", ".join(get_close_matches(name, _DEFAULTS, cutoff=0))
            raise TypeError(f"a Pipeline has no field {name!r}; the nearest are {near}")
        if values["choices"] is not PLAIN or not given.keys().isdisjoint(CHOICES):
            chosen: dict[str, Any] = {
                name: settled(given.get(name, getattr(values["choices"], name))) for name in CHOICES
            }
            require_types(chosen, Choices)
            values["choices"] = Choices(**chosen)
        made: Any = values["choices"]
        told = given.keys() & {"backward", "split_backward"} or made.split_backward or made.omitting
        if not told and not given.keys().isdisjoint(HALVES):
            raise ValueError(
                f"{' and '.join(HALVES)} are ticks of split backwards, but split_backward is False;"
                " add split_backward=True, or backward, the ticks of a whole one"
            )
        of_fields(self, **{name: value for name, value in values.items() if value is not MISSING})

    cls.__init__ = init  # type: ignore[assignment]  # with the same fields
    return cls


@_with_choices_by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatement(_ChoicesByName):
    """The numbers, the links and the choices; ``Pipeline`` says what each is."""

    num_ranks: Count
    num_microbatches: Count
    num_chunks: Count = 1
    num_slices: Count = 1
    forward: TicksField = 1
    backward: TicksField = 2
    input_backward: TicksField = 1
    weight_backward: TicksField = 1
    activation: StageField = 1
    released_at_input: SignedField = 0
    weight_workspace: Annotated[int | Parts, _NUMBERS] = ()
    static: StageField = 0
    capacity: int | tuple[int | None, ...] | None = None
    message: StageField = 0
    latency: int = 0
    bandwidth: int | Fraction | None = None
    duplex: Annotated[str, OneOf(DUPLEX)] = "half"
    links: Annotated[tuple[Link, ...], Expectation("a tuple of Link")] = ()
    choices: Annotated[Choices, Expectation("Choices")] = PLAIN
    unit: Annotated[str, Expectation("a name")] = "tick"
    memory_unit: Annotated[str, Expectation("a name")] = "activation"

    def __post_init__(self) -> None:
        for name in _COUNTS:
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
        rows, shape = self.split_backward, [self.num_microbatches] * self.num_stages
        if not isinstance(rows, bool) and [*map(len, rows)] != shape:
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
        for name, limit in _PER_STAGE.items():
            value = stage_numbers(name, getattr(self, name), num_stages=stages, minimum=limit.least)
            object.__setattr__(self, name, value)
        for name in TICKS:
            ticks = stage_ticks(name, getattr(self, name), num_stages=stages, num_slices=slices)
            object.__setattr__(self, name, ticks)
        parts = weight_rows(self.choices.weight_parts, num_stages=stages)
        require_sums(parts, grid(self.weight_backward, num_slices=slices))
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
        for released, held in zip(self.released_at_input, self.activation, strict=True):  # type: ignore[arg-type]  # rows by now
            if released > held:
                raise ValueError(f"released_at_input ({released}) exceeds activation ({held})")
        caps = self.capacities
        if len(caps) != self.num_ranks:
            raise ValueError(
                f"capacity must be one number or one per rank ({self.num_ranks}), got {len(caps)}"
            )
        for cap in (cap for cap in caps if cap is not None):
            require_whole("capacity", cap, minimum=0, bounded=False)

    def __repr__(self) -> str:
        """The call that makes it, without what is left at its default."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in (*_PER_STAGE, *TICKS):
            if len(set(values[name])) == 1:  # one number for all stages
                values[name] = values[name][0]
        choices = values.pop("choices")
        values |= {name: getattr(choices, name) for name in CHOICES}
        given = {name for name, value in values.items() if value != _DEFAULTS[name]}
        if given & {*HALVES} and not (self.split_backward or choices.omitting):
            given.add("backward")
        told = [f"{name}={value!r}" for name, value in values.items() if name in given]
        return f"Pipeline({', '.join(told)})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """A choice by its own name."""
            if name in CHOICES:
                return getattr(self.choices, name)
            raise AttributeError(f"a Pipeline has no {name}")

    @property
    def is_extreme(self) -> bool:
        """Whether its numbers, or their sums, could be too large for a Problem, which says so."""
        numbers = np.hstack([np.ravel(getattr(self, name)) for name in (*TICKS, *_PER_STAGE)])
        ways: tuple[Link | PipelineStatement, ...] = (self, *self.links)
        flat = [*numbers.tolist(), *chain(*self.workspace), *(way.latency for way in ways)]
        rates = [Fraction(1), *(1 / Fraction(way.bandwidth) for way in ways if way.bandwidth)]
        actions = self.num_stages * self.num_microbatches * self.num_slices
        most = max(map(abs, flat)) * max(rates) * actions
        is_long = self.num_stages > MAX_STAGE or self.num_slices > MAX_SLICE
        return is_long or most >= 1 << 52  # a sum has less than 256 of each

    @property
    def capacities(self) -> tuple[int | None, ...]:
        """The memory of each rank, None where it has no limit."""
        caps = self.capacity if isinstance(self.capacity, tuple) else (self.capacity,)
        return caps * self.num_ranks if len(caps) == 1 else caps

    @property
    def least_capacity(self) -> int | None:
        """The smallest memory of a rank that has a limit; None where none has."""
        return min((cap for cap in self.capacities if cap is not None), default=None)

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
        is_late = np.arange(self.num_microbatches) >= num_downward(self.num_microbatches)
        return np.where(is_late & self.is_bidirectional, self.num_ranks - 1 - down, down)

    @property
    def all_links(self) -> Links:
        """The links between any two ranks."""
        return Links(
            latency=self.latency, bandwidth=self.bandwidth, duplex=self.duplex, named=self.links
        )

    @property
    def setting(self) -> ChoiceSetting:
        """What its choices have to know of it."""
        return ChoiceSetting(
            links=self.all_links,
            ticks=self.ticks,
            host_capacity=self.choices.host_capacity,
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
        sizes = [max(1, len(row)) for row in self.part_ticks]
        return np.array(sizes or [1] * self.num_stages, dtype=np.int64)

    @property
    def part_ticks(self) -> tuple[tuple[int, ...], ...]:
        """The ticks of the parts of W, a row per stage; no rows where every W is whole."""
        return self.choices.weight_parts  # type: ignore[return-value]  # brought to this form at the start

    @property
    def workspace(self) -> tuple[tuple[int, ...], ...]:
        """``weight_workspace``, a row per stage; no rows where nothing is held."""
        return self.weight_workspace  # type: ignore[return-value]  # brought to this form at the start

    def with_changes(self, **changes: object) -> Self:
        """A copy with some fields changed, checked anew."""
        return replace(self, **changes)  # type: ignore[arg-type]  # any field may change


_FIELDS = declared(PipelineStatement)
TICKS = tuple(name for name, hint in _FIELDS.items() if hint == TicksField)
_COUNTS = tuple(name for name, hint in _FIELDS.items() if hint == Count)
_PER_STAGE: dict[str, AtLeast] = {
    name: beside(hint, AtLeast)
    for name, hint in _FIELDS.items()
    if hint in (StageField, SignedField)
}
_DEFAULTS: dict[str, object] = {
    field.name: field.default for kind in (PipelineStatement, Choices) for field in fields(kind)
}
