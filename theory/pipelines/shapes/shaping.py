"""What a candidate makes of a problem that is stated for one chunk and one slice.

A rank of v chunks and s slices has v*s pieces of each microbatch. Each takes 1/(v*s) of what the
rank takes and holds: the ticks of its actions, of recomputation and of transfers; its activation,
what a split backward releases early of it, what a recomputed one keeps; the GEMMs of W and their
workspaces. What stays as it is: the static memory of a rank, which lies with the first of its
chunks; the latency of a message between two ranks; what a stage sends on, but for slices, each of
which sends its share. With ``layers`` a stage takes and holds what its layers do, and only slices
divide that. A share must be whole. What is chosen of the problem's stages (frozen ones, evictions)
has no meaning in a shape that has others.

Of a *bidirectional* candidate each stage stands on two ranks, and nothing more is open in it. One
that stands beside the shapes is what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.limits import OversizeError, require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import TICKS
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, stage_ranks
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import (
    SPLIT,
    WHOLE,
    Backward,
    Candidate,
    PlanSpace,
)
from bubbleproof.theory.pipelines.stage_numbers import column

Columns = dict[str, Sequence[int]]
_UNUSED = {WHOLE: ("input_backward", "weight_backward"), SPLIT: ("backward",)}


class NotLegalError(ValueError):
    """There is no such candidate: the number that does not divide, or what has no meaning.

    ``is_too_large``: there may be one, larger than we take.
    """

    def __init__(self, why: str, *, is_too_large: bool = False) -> None:
        super().__init__(why)
        self.is_too_large = is_too_large


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapedPipeline:
    """A candidate as a pipeline, and what is open in it (None: nothing)."""

    pipeline: Pipeline
    allowed: AllowedChoices | None


def shaped(space: PlanSpace, candidate: Candidate) -> ShapedPipeline:
    """The candidate as a pipeline. Raises ``NotLegalError`` where there is none."""
    if candidate.beside:
        return _beside(space, candidate)
    given, pieces = space.pipeline, candidate.chunks * candidate.slices
    try:
        ranks = _stage_ranks(space, candidate)
        fits = ranks == given.stage_ranks and (candidate.slices == 1 or given.choices.is_of_stages)
        if not fits and (chosen := sorted(given.choices.added)):
            raise NotLegalError(f"{chosen[0]} is of the problem's stages; this shape has others")
        pipeline = given.with_changes(
            num_chunks=candidate.chunks,
            num_slices=candidate.slices,
            placement=candidate.placement,
            split_backward=_flags(candidate.backward, ranks, given.num_microbatches),
            message=_shares("message", _each(column(given.message), ranks), candidate.slices),
            weight_parts=_rows("weight_parts", given.part_ticks, ranks, pieces),
            weight_workspace=_rows("weight_workspace", given.workspace, ranks, pieces),
            **_of_stages(space, candidate, ranks),
        )
        allowed = _allowed(space.allowed, ranks, pieces)
    except ValueError as error:
        raise NotLegalError(str(error), is_too_large=isinstance(error, OversizeError)) from None
    return ShapedPipeline(pipeline=pipeline, allowed=None if pipeline.is_bidirectional else allowed)


def _beside(space: PlanSpace, candidate: Candidate) -> ShapedPipeline:
    """The pipeline of this name, with nothing open in it."""
    pipeline = dict(space.others).get(candidate.beside)
    if pipeline is None:
        raise NotLegalError(f"no pipeline {candidate.beside!r} stands beside the shapes")
    return ShapedPipeline(pipeline=pipeline, allowed=None)


def _stage_ranks(space: PlanSpace, candidate: Candidate) -> tuple[int, ...]:
    """The rank of each stage. Raises ``NotLegalError`` where shapes do not fit."""
    ranks, chunks = space.pipeline.num_ranks, candidate.chunks
    m, slices = space.pipeline.num_microbatches, candidate.slices
    shape = f"{ranks * chunks} stages ({chunks} on each of {ranks} ranks)"
    if space.layers is not None and not space.layers.has(candidate.layers or (), ranks * chunks):
        raise NotLegalError(f"{space.layers.number} layers are not divisible by {shape}")
    if candidate.placement == BIDIRECTIONAL and chunks > 1:
        raise NotLegalError(f"placement bidirectional takes 1 chunk, got {chunks}")
    require_size(ranks=ranks, chunks=chunks, microbatches=m, slices=slices)
    if isinstance(candidate.placement, str):
        return stage_ranks(candidate.placement, num_ranks=ranks, num_chunks=chunks)
    if len(candidate.placement) != ranks * chunks:
        raise NotLegalError(f"a placement of {len(candidate.placement)} stages is none of {shape}")
    for rank in candidate.placement:
        if not 0 <= rank < ranks:
            raise NotLegalError(f"placement names rank {rank}, which is none of 0 to {ranks - 1}")
    return candidate.placement


def _of_stages(
    space: PlanSpace, candidate: Candidate, ranks: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """Ticks and memory per stage."""
    if space.layers is not None and candidate.layers is not None:
        columns, static = _of_layers(space.layers, candidate.layers)
        return {**_all_shares(columns, candidate.slices, candidate.backward), "static": static}
    given, pieces = space.pipeline, candidate.chunks * candidate.slices
    shares: Columns = {name: _each(getattr(given.ticks, name)[:, 0], ranks) for name in TICKS}
    shares["activation"] = _each(given.per_stage.activation, ranks)
    shares["released_at_input"] = _each(given.per_stage.released, ranks)
    left = dict(enumerate(given.per_stage.static.tolist()))
    static = tuple(left.pop(rank, 0) for rank in ranks)  # with the first stage of each
    return {**_all_shares(shares, pieces, candidate.backward), "static": static}


def _of_layers(layers: Layers, cut: Cut) -> tuple[Columns, tuple[int, ...]]:
    parts = layers.stages(cut)
    columns: Columns = {name: [getattr(part, name) for part in parts] for name in TICKS}
    columns["activation"] = [part.activation for part in parts]
    columns["released_at_input"] = [part.released for part in parts]
    return columns, tuple(part.static for part in parts)


def _all_shares(columns: Columns, pieces: int, backward: Backward) -> dict[str, tuple[int, ...]]:
    """The share of each number; one of an action that the candidate has not is rounded down."""
    unused = _UNUSED.get(backward, ()) if isinstance(backward, str) else ()
    return {
        name: tuple(value // pieces for value in values)
        if name in unused
        else _shares(name, values, pieces)
        for name, values in columns.items()
    }


def _allowed(
    given: AllowedChoices | None, ranks: Sequence[int], pieces: int
) -> AllowedChoices | None:
    """What is open on the stages of the ranks named; each transfer and R takes a share."""
    if given is None:
        return None
    again, evict, offload = given.recompute, given.evict, given.offload

    def stages(of_ranks: Sequence[int]) -> tuple[int, ...]:
        return tuple(stage for stage, rank in enumerate(ranks) if rank in of_ranks)

    def share(what: str, value: int) -> int:
        return _shares(f"choices.{what}", (value,), pieces)[0]

    return AllowedChoices(
        recompute=again
        and replace(
            again,
            stages=stages(again.stages),
            kept=share("recompute.kept", again.kept),
            duration=again.duration and share("recompute.duration", again.duration),
        ),
        evict=evict and replace(evict, duration=share("evict.duration", evict.duration)),
        offload=offload
        and replace(
            offload,
            stages=stages(offload.stages),
            offload=share("offload.offload", offload.offload),
            reload=share("offload.reload", offload.reload),
        ),
    )


def _flags(
    backward: Backward, ranks: Sequence[int], num_microbatches: int
) -> bool | tuple[tuple[bool, ...], ...]:
    if isinstance(backward, str):
        return backward == SPLIT
    return tuple((backward[rank],) * num_microbatches for rank in ranks)


def _each(of_ranks: Ints, ranks: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(of_ranks[rank]) for rank in ranks)


def _rows(
    name: str, rows: Sequence[Sequence[int]], ranks: Sequence[int], pieces: int
) -> tuple[tuple[int, ...], ...]:
    return tuple(_shares(name, rows[rank], pieces) for rank in ranks) if rows else ()


def _shares(name: str, values: Sequence[int], pieces: int) -> tuple[int, ...]:
    for value in values:
        if value % pieces:
            raise NotLegalError(f"{name} {value} is not divisible by {pieces}")
    return tuple(value // pieces for value in values)
