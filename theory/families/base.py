"""What a family of schedules is: a named rule that orders the tasks of a pipeline.

A family turns parameters into a ``Pipeline`` (with unit activations and the given durations), and
any pipeline of its shape into a ``Program``. The order depends on the shape alone, so a family's
program also applies to a user's pipeline with uneven stages, latencies and bytes. (One exception:
``svpp-w`` fits single GEMMs and slices of unequal cost to their ticks.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Never

import numpy as np

from bubbleproof.theory.families.parameters import TICKS, FamilyParameters, make_parameters
from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.theory.pipelines.timing import left_shift


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FamilyMember:
    """One schedule of a family: its pipeline, its problem, and the left-shifted schedule."""

    pipeline: Pipeline
    problem: Problem
    schedule: Schedule
    params: dict[str, int | tuple[int, ...]]

    def __repr__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"<FamilyMember {words}: {self.schedule!r}>"


class Family(ABC):
    """A named rule that orders the tasks of any pipeline of its shape.

    ``least`` names what its source or a theorem says that no order has less of: the ``bubble``, in
    the memory that it takes on each rank, or the ``memory``, in its makespan.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    default_chunks: ClassVar[int] = 1
    has_two_chunks: ClassVar[bool] = False  # and no other number
    placement: ClassVar[str] = "loop"
    is_split: ClassVar[bool] = False
    ticks: ClassVar[tuple[str, ...]] = TICKS  # the durations that it has parameters for
    cuts_weights: ClassVar[bool] = False
    least: ClassVar[frozenset[str]] = frozenset()
    adds: ClassVar[frozenset[str]] = frozenset()  # the choices (``Choices.added``) that it orders

    def places(self, pipeline: Pipeline) -> str | tuple[int, ...]:
        """Where it wants the stages of a pipeline of so many ranks and chunks."""
        del pipeline
        return self.placement

    @abstractmethod
    def program(self, pipeline: Pipeline) -> Program:
        """The order on each rank. Precondition: ``refusal(pipeline)`` is None."""

    def refusal(self, pipeline: Pipeline) -> str | None:
        """Why this family has no schedule for the pipeline's shape, or None when it has one."""
        if self.has_two_chunks and pipeline.num_chunks != 2:
            return f"{self.name} has two chunks per rank, got v={pipeline.num_chunks}"
        if pipeline.num_chunks != 1 and "v" not in self.options:
            return f"{self.name} has one chunk per rank, got v={pipeline.num_chunks}"
        if pipeline.num_slices != 1 and "s" not in self.options:
            return f"{self.name} does not slice samples, got s={pipeline.num_slices}"
        placement = self.places(pipeline)
        if placement != pipeline.placement:  # two words may say the same
            expected = pipeline.with_changes(choices=Choices(placement=placement))
            if (pipeline.rank_grid != expected.rank_grid).any():
                word = placement if isinstance(placement, str) else "blocks"
                return f"{self.name} places stages as {word}: {expected.stage_ranks}"
        if pipeline.split_backward is not self.is_split:
            kind = "split" if self.is_split else "full"
            return f"{self.name} has {kind} backwards (split_backward = {self.is_split})"
        if pipeline.overlaps:
            return f"{self.name} overlaps no forward with a backward, got overlaps"
        if pipeline.part_ticks and not self.cuts_weights:
            return f"{self.name} runs each W whole, got weight_parts"
        if beyond := pipeline.choices.added - self.adds:
            return f"{self.name} gives no order of tasks that {', '.join(sorted(beyond))} add"
        return None

    def ours(self, pipeline: Pipeline) -> str | None:
        """What of the order is not its source's at this shape, in a sentence; None where all is.

        Precondition: ``refusal(pipeline)`` is None.
        """
        del pipeline
        return None

    def fitted(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with this family's choices in place of its own; parts of W stay if it can.

        Precondition: the numbers per stage stay right for the family's number of chunks. Whether
        the family takes the result is for ``refusal`` to say.
        """
        fitting = pipeline if self.cuts_weights else with_whole_weights(pipeline)
        return fitting.with_changes(
            choices=Choices(
                placement=self.places(pipeline),
                split_backward=self.is_split,
                weight_parts=fitting.part_ticks,
            )
        )

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with what this family adds to it (recomputation, off-loading), by default.

        Precondition: it has the family's shape.
        """
        return pipeline

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        """The pipeline the parameters describe. Raises ``ValueError`` for one it cannot take."""
        for name in ("v", "s", "f", "G", "R", "e", "d"):
            value = getattr(params, name)
            if name not in self.options and value is not None and not (name in "vs" and value == 1):
                raise ValueError(f"{self.name} takes no parameter {name}, got {name}={value}")
        input_ticks, weight_ticks = params.split_ticks if self.is_split else (1, 1)
        made = Pipeline(
            num_ranks=params.p,
            num_microbatches=params.m,
            num_chunks=params.v or self.default_chunks,
            num_slices=params.s or 1,
            split_backward=self.is_split,
            forward=params.tF,
            backward=input_ticks + weight_ticks if self.is_split else params.full_ticks,
            input_backward=input_ticks,
            weight_backward=weight_ticks,
        )
        placement = self.places(made)
        return made if made.placement == placement else made.with_changes(placement=placement)

    def schedule(self, pipeline: Pipeline, problem: Problem | None = None) -> Schedule:
        """The left-shifted schedule on a pipeline. Raises ``ValueError`` quoting ``refusal``."""
        if (why := self.refusal(pipeline)) is not None:
            raise ValueError(why)
        problem = problem or pipeline.problem()
        return left_shift(problem, with_messages_in_order(problem, self.program(pipeline)))

    def variant(self, params: FamilyParameters) -> Family:
        """The family that orders as ``f``, ``G``, ``e`` and ``d`` ask; this one if it has none."""
        del params
        return self

    def grouped(self, pipeline: Pipeline) -> Mapping[str, Family]:
        """Its orders as its source runs them, of the ``G`` that are worth a try, by name."""
        return {self.name: self} if self.refusal(pipeline) is None else {}

    def member(self, params: FamilyParameters) -> FamilyMember:
        """The family's schedule for the parameters, with every default filled in."""
        chosen = self.variant(params)
        pipeline = chosen.pipeline(params)
        problem = pipeline.problem()
        schedule = chosen.schedule(pipeline, problem)
        told = chosen.full_params(params, pipeline)
        return FamilyMember(pipeline=pipeline, problem=problem, schedule=schedule, params=told)

    def __call__(self, *unnamed: Never, **params: int | tuple[int, ...]) -> FamilyMember:
        """The schedule for the parameters by their short names: ``family("1f1b")(p=4, m=8)``."""
        if unnamed:
            raise TypeError(f"parameters have names: write family({self.name!r})(p=4, m=8)")
        return self.member(make_parameters(params))

    def __repr__(self) -> str:
        return f"<Family {self.name}: {self.title}>"

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        """The parameters by their short names, defaults filled in."""
        ticks = (
            dict(zip(("tI", "tW"), params.split_ticks, strict=True))
            if self.is_split
            else {"tB": params.full_ticks}
        )
        counts = {"p": params.p, "m": params.m, "v": pipeline.num_chunks, "s": pipeline.num_slices}
        return {**counts, "tF": params.tF, **ticks}


def program_of_ranks(rows: Sequence[tuple[Ints, ...]]) -> Program:
    """A program from the columns (kind, stage, microbatch[, slice]) of each rank.

    Parameters
    ----------
    rows
        For each rank its columns, of one length each.
    """
    columns = [np.concatenate(parts) for parts in zip(*rows, strict=True)]
    return Program(
        actions=ActionTable.of(*columns),
        resource=np.repeat(np.arange(len(rows)), [len(row[0]) for row in rows]),
    )


def in_turn(
    pipeline: Pipeline,
    warmups: Sequence[int],
    sizes: Sequence[int] | Ints,
    *,
    stacked: bool = False,
) -> Program:
    """One forward and one backward of a piece in turn on each rank, behind its warm-up.

    A piece is a slice of a sample, or all of one. Pieces pass by groups: chunk 0, ... v-1 of a
    group before the next begins. Backwards take the groups in the same order, chunk v-1 first, and
    of each sample the last slice first, because slice k attends to the slices before it.

    Parameters
    ----------
    warmups
        Forwards before the first backward, by rank; more than there are stand for all.
    sizes
        Pieces of each group, of whole samples; they add up to all.
    stacked
        Whether a sample has one group or several of its own, and its backwards run back through
        its forwards: what passed last comes first.
    """
    p, m, s = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_slices
    chunks = range(pipeline.num_chunks)
    forward, (chunk, piece) = np.stack(passes(sizes, chunks)), passes(sizes, chunks[::-1])
    backward = np.stack([chunk, piece + s - 1 - 2 * (piece % s)])
    if stacked:
        backward = forward.reshape(2, m, -1)[:, :, ::-1].reshape(2, -1)
    rows = []
    for rank, warmup in enumerate(warmups):
        kind, place = one_forward_one_backward(warmup, m * s * len(chunks))
        chunk, piece = np.where(kind == Kind.F, forward[:, place], backward[:, place])
        rows.append((kind, chunk * p + rank, *np.divmod(piece, s)))
    return program_of_ranks(rows)


def with_whole_weights(pipeline: Pipeline) -> Pipeline:
    """The pipeline in which no W is cut; it holds what the largest of its parts does."""
    largest = tuple((max(row),) for row in pipeline.workspace)
    return pipeline.with_changes(weight_parts=(), weight_workspace=largest)


def program_of_tasks(problem: Problem, orders: Sequence[Sequence[int]]) -> Program:
    """A program from the tasks of each rank.

    Parameters
    ----------
    orders
        For each rank indices of its tasks.
    """
    return Program(
        actions=problem.actions.take(np.concatenate(orders).astype(np.int64)),
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )


def passes(sequence: Sequence[int] | Ints, chunks: Sequence[int]) -> tuple[Ints, Ints]:
    """(chunk, microbatch) of all passes of one kind: by operation, then chunk, then microbatch.

    Parameters
    ----------
    sequence
        How many microbatches each operation takes in turn.
    chunks
        The chunks that each of them runs, in order.
    """
    ends = np.cumsum(sequence)
    groups = [np.arange(end - size, end) for size, end in zip(sequence, ends, strict=True)]
    chunk = [np.repeat(chunks, len(group)) for group in groups]
    microbatch = [np.tile(group, len(chunks)) for group in groups]
    return np.concatenate(chunk), np.concatenate(microbatch)


def one_forward_one_backward(warmup: int, count: int) -> tuple[Ints, Ints]:
    """``warmup`` F, then B and F in turn, then B, for n=``count`` forwards and n backwards.

    Returns (kind, position) columns of length 2n; ``position`` counts forwards and backwards apart.
    Forward ``warmup + i`` follows backward i; with ``warmup`` 0 it precedes backward i instead.

    Parameters
    ----------
    warmup
        Forwards before the first backward, 0 or more.
    count
        n.

    Returns
    -------
    tuple[Ints, Ints]
        Columns (kind, position) of length 2n; ``position`` counts forwards and backwards apart.
    """
    warmup = min(warmup, count)
    index = np.arange(count)
    forward_slot = np.where(index < warmup, index, 2 * index - warmup + 1)
    backward_slot = np.where(index < count - warmup, 2 * index + warmup, index + count)
    kind = np.zeros(2 * count, dtype=np.int64)
    position = np.zeros(2 * count, dtype=np.int64)
    kind[forward_slot], position[forward_slot] = Kind.F, index
    kind[backward_slot], position[backward_slot] = Kind.B, index
    return kind, position
