"""What the numbers of one rank show of a pipeline, with no task of it built.

Both claims are about every schedule of a pipeline; ``refusal_of`` recomputes them in microseconds
from its stages.

``RankWork``: the first action of rank r is an F of some stage g, of a first slice, which has come
through the stages before g. The rank computes all its stages for each microbatch, and where
backwards are whole its last action is a B of a first slice, from which the gradient still goes back
to stage 0. So

    makespan >= min over g of head(g) + m sum of (tF + tB) + min over g of tail(g),

g over the stages of r, head and tail what a first slice takes through the stages before g, with the
messages between: Jackson's bound with the least heads and tails of a rank. A split backward may end
with a W, after which nothing follows. Memory is left out; what a choice adds only takes longer.

``NoRoom``: at the end of a microbatch's last forward, rank r holds its stages' weights and all that
they keep of that microbatch. Where that is more than its capacity, there is no schedule at all.
Choices that take activations away are not for this claim, nor are bidirectional pipelines for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bubbleproof.theory.pipelines.allowed import Allowed
from bubbleproof.theory.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    """Claims ``makespan >= bound`` because of what ``rank`` computes."""

    rank: int
    bound: int
    objective: str = "makespan"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom:
    """Claims that there is no schedule, hence any ``bound``, because of what ``rank`` holds."""

    rank: int
    bound: int
    objective: str = "makespan"


RankClaim = RankWork | NoRoom


def refusal_of(pipeline: Pipeline, allowed: Allowed | None, claim: RankClaim) -> str | None:
    """Why the claim does not hold for every schedule of every choice; None where it does."""
    if claim.objective != "makespan":
        return f"what a rank computes bounds the makespan, not {claim.objective!r}"
    if not 0 <= claim.rank < pipeline.num_ranks:
        return f"rank {claim.rank} is none of the pipeline's {pipeline.num_ranks}"
    if pipeline.is_bidirectional:
        return "its stages stand on two ranks each"
    if isinstance(claim, RankWork):
        found = rank_bounds(pipeline)[claim.rank]
        is_shown = claim.bound <= found
        return None if is_shown else f"rank {claim.rank} shows {found} ticks, not {claim.bound}"
    if allowed is not None or pipeline.choices.added:
        return "what a rank holds depends on choices"
    room = rank_room(pipeline)[claim.rank]
    if room is None or room >= 0:
        return f"rank {claim.rank} has room for one microbatch"
    return None


def rank_bounds(pipeline: Pipeline) -> list[int]:
    """Ticks that no schedule undercuts, by rank. Precondition: not bidirectional."""
    ticks, ranks = pipeline.ticks, pipeline.stage_ranks
    is_whole = pipeline.split_backward is False
    halves = ticks.input_backward + ticks.weight_backward
    backward = ticks.backward if is_whole else np.minimum(ticks.backward, halves)
    each = (ticks.forward + backward).sum(axis=1).tolist()
    between = pipeline.boundaries
    message = (between.ticks + between.latency).min(axis=1).tolist()
    heads = _before(ticks.forward[:, 0].tolist(), message)
    tails = _before(backward[:, 0].tolist(), message) if is_whole else [0] * len(ranks)
    found = []
    for rank in range(pipeline.num_ranks):
        own = [stage for stage, at in enumerate(ranks) if at == rank]
        work = pipeline.num_microbatches * sum(each[g] for g in own)
        found.append(work + min(heads[g] for g in own) + min(tails[g] for g in own))
    return found


def rank_room(pipeline: Pipeline) -> list[int | None]:
    """Memory units that each rank has beside its weights and one microbatch; None: no limit."""
    columns, caps = pipeline.per_stage, pipeline.capacity
    held = [0] * pipeline.num_ranks
    of_stage = columns.static + pipeline.num_slices * columns.activation
    for rank, units in zip(pipeline.stage_ranks, of_stage.tolist(), strict=True):
        held[rank] += units
    limits = caps if isinstance(caps, tuple) else (caps,) * pipeline.num_ranks
    return [
        None if limit is None else limit - units for limit, units in zip(limits, held, strict=False)
    ]


def _before(ticks: Sequence[int], message: Sequence[int]) -> list[int]:
    """What a slice takes through the stages before each, with the messages between."""
    steps = [a + b for a, b in zip(ticks, message, strict=False)]
    return [0, *accumulate(steps)]
