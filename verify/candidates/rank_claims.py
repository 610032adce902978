"""What the numbers of one rank show of a pipeline, with no task of it built.

All claims are about every schedule of a pipeline; ``refusal_of`` recomputes them in microseconds
from its stages.

``RankWork``: the first action of rank r is an F of some stage g, of a first slice, which has come
through the stages before g. The rank computes all its stages for each microbatch, and where
backwards are whole its last action is a B of a first slice, from which the gradient still goes back
to stage 0. So

    makespan >= min over g of head(g) + m sum of (tF + tB) + min over g of tail(g),

g over the stages of r, head and tail what a first slice takes through the stages before g, with the
messages between: Jackson's bound with the least heads and tails of a rank. A split backward may end
with a W, after which nothing follows. Memory is left out; what a choice adds only takes longer.

``RankMemory``: an activation of stage g is held from the start of its F to the end of its B (or I),
hence for life(g), what its slice takes forward and back through stage g and all behind it. Rank r
does all that between the least head and the least tail of its stages, and never holds more than its
capacity less its weights; where it has one stage, no more than as many whole activations as fit:

    makespan >= min head + m sum of activation(g) life(g) / room + min tail.

``NoRoom``: take the last slice of a microbatch, and t the start of its F on stage h of rank r. The
rank's F of that microbatch on the stages up to h, of every slice, have begun by t; of what they
acquired nothing is given back before the B (or I) of this slice on stage h ends, life(h) later.
**Hypothesis: life(h) is more than 0.** Then after all changes of the instant t, when releases count
before acquisitions, rank r holds its stages' weights and all that the stages up to h keep of the
microbatch. Where that is more than its capacity, there is no schedule at all. A stage of life 0 may
give back at t what it acquires at t. life(g) falls along the stages, so h is the highest with one,
and stages without are left out.

Choices that take activations away are not for these two, bidirectional pipelines are for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClaim:
    """A claim because of what ``rank`` computes or holds; the three kinds below say which."""

    rank: int
    bound: int
    objective: str = "makespan"


class RankWork(RankClaim):
    """Claims ``makespan >= bound`` because of what ``rank`` computes."""

    __slots__ = ()


class RankMemory(RankClaim):
    """Claims ``makespan >= bound`` because of what ``rank`` holds, and for how long."""

    __slots__ = ()


class NoRoom(RankClaim):
    """Claims that there is no schedule, hence any ``bound``, because of what ``rank`` holds."""

    __slots__ = ()


def refusal_of(pipeline: Pipeline, allowed: AllowedChoices | None, claim: RankClaim) -> str | None:
    """Why the claim does not hold for every schedule of every choice; None where it does."""
    if claim.objective != "makespan":
        return f"what a rank computes bounds the makespan, not {claim.objective!r}"
    if not 0 <= claim.rank < pipeline.num_ranks:
        return f"rank {claim.rank} is none of the pipeline's {pipeline.num_ranks}"
    if pipeline.is_bidirectional:
        return "its stages stand on two ranks each"
    if isinstance(claim, RankWork):
        return _above(claim, rank_bounds(pipeline)[claim.rank])
    if allowed is not None or pipeline.choices.added:
        return "what a rank holds depends on choices"
    if isinstance(claim, RankMemory):
        return _above(claim, memory_bounds(pipeline)[claim.rank])
    room = rank_room(pipeline)[claim.rank]
    if room is None or room >= 0:
        return f"rank {claim.rank} has room for one microbatch"
    return None


def _above(claim: RankClaim, found: int) -> str | None:
    """Why the claim is more than what was found, or None."""
    if claim.bound <= found:
        return None
    return f"rank {claim.rank} shows {found} ticks, not {claim.bound}"


def rank_bounds(pipeline: Pipeline) -> list[int]:
    """Ticks of ``RankWork``, by rank. Precondition: not bidirectional."""
    ticks = pipeline.ticks
    each = (ticks.forward + _backward(pipeline)).sum(axis=1).tolist()
    return [
        ends + pipeline.num_microbatches * sum(each[g] for g in own)
        for own, ends in zip(_stages_of(pipeline), _ends(pipeline), strict=True)
    ]


def memory_bounds(pipeline: Pipeline) -> list[int]:
    """Ticks of ``RankMemory``, by rank; 0 without a limit. Precondition: not bidirectional."""
    columns, life = pipeline.per_stage, _lives(pipeline).sum(axis=1)
    found = []
    for rank, (own, ends) in enumerate(zip(_stages_of(pipeline), _ends(pipeline), strict=True)):
        held = sum(int(columns.activation[g]) * int(life[g]) for g in own)
        room = _room(pipeline, rank, sum(int(columns.static[g]) for g in own))
        if room is None or held == 0:
            found.append(0)
            continue
        if len(own) == 1:  # whole activations
            room -= room % int(columns.activation[own[0]])
        found.append(ends + -(-pipeline.num_microbatches * held // room) if room > 0 else 0)
    return found


def _lives(pipeline: Pipeline) -> Ints:
    """Ticks at least from the start of F to the end of B or I, shape (num_stages, num_slices)."""
    ticks = pipeline.ticks
    back = ticks.backward
    if pipeline.split_backward is not False:
        back = np.minimum(back, ticks.input_backward)
    behind = np.cumsum([0, *_messages(pipeline)[::-1]])[::-1]
    lives: Ints = np.cumsum((ticks.forward + back)[::-1], axis=0)[::-1] + 2 * behind[:, None]
    return lives


def _backward(pipeline: Pipeline) -> Ints:
    """Ticks of backwards at least, whole or in halves, shape (num_stages, num_slices)."""
    ticks = pipeline.ticks
    if pipeline.split_backward is False:
        return ticks.backward
    halves: Ints = np.minimum(ticks.backward, ticks.input_backward + ticks.weight_backward)
    return halves


def _messages(pipeline: Pipeline) -> list[int]:
    between = pipeline.boundaries
    found: list[int] = (between.ticks + between.latency).min(axis=1).tolist()
    return found


def _stages_of(pipeline: Pipeline) -> list[list[int]]:
    """The stages of each rank."""
    found: list[list[int]] = [[] for _ in range(pipeline.num_ranks)]
    for stage, rank in enumerate(pipeline.stage_ranks):
        found[rank].append(stage)
    return found


def _ends(pipeline: Pipeline) -> list[int]:
    """The least head and the least tail of each rank's stages together."""
    message = _messages(pipeline)
    heads = _before(pipeline.ticks.forward[:, 0].tolist(), message)
    tails = [0] * len(heads)
    if pipeline.split_backward is False:
        tails = _before(_backward(pipeline)[:, 0].tolist(), message)
    return [min(heads[g] for g in own) + min(tails[g] for g in own) for own in _stages_of(pipeline)]


def _room(pipeline: Pipeline, rank: int, static: int) -> int | None:
    limit = pipeline.capacities[rank]
    return None if limit is None else limit - static


def rank_room(pipeline: Pipeline) -> list[int | None]:
    """Memory units that each rank has beside what ``NoRoom`` counts; None: no limit."""
    columns, has_life = pipeline.per_stage, _lives(pipeline)[:, -1] > 0
    of_stage = (columns.static + pipeline.num_slices * columns.activation * has_life).tolist()
    return [
        _room(pipeline, rank, sum(of_stage[g] for g in own))
        for rank, own in enumerate(_stages_of(pipeline))
    ]


def _before(ticks: Sequence[int], message: Sequence[int]) -> list[int]:
    """What a slice takes through the stages before each, with the messages between."""
    steps = [a + b for a, b in zip(ticks, message, strict=False)]
    return [0, *accumulate(steps)]
