"""What one rank does and holds of a pipeline, and for how long: bounds of a millisecond.

All claims are about every schedule of a pipeline. ``refusal_of`` derives what a rank shows from the
tasks, precedences and memory events of ``pipeline.problem()``, so that a choice cannot be
forgotten. Where no choice tells microbatches apart (``is_alike``), the problem is m copies of that
of one microbatch with precedences between them, and only the one is built; else all of it is.
*Heads* and *tails* are longest paths in it, between computations.

``RankWork``: rank r runs its tasks one after another, none before the least head and none after the
last of them but what the least tail takes (Jackson's bound). With the tasks of one microbatch,

    makespan >= min head + m sum of durations + min tail.

``RankMemory``: slice k of stage g *holds* what its F acquires, less all that is given back before
its B (or I) ends, from the start of F to that end; hence for life(g, k), the path down from F to
the last stage and back. Rank r does all that between the least head and the least tail of its
tasks, and never holds more than its capacity less its weights; where it has one stage, no more than
as many whole activations as fit:

    makespan >= min head + m sum of held(g, k) life(g, k) / room + min tail.

``NoRoom``: take the last slice of a microbatch, and t the start of its F on stage h of rank r. The
rank's F of that microbatch on the stages up to h, of every slice, have begun by t; of what they
acquired nothing is given back before the B (or I) of this slice on stage h ends, life(h) later.
**Hypothesis: life(h) is more than 0.** Then after all changes of the instant t, when releases count
before acquisitions, rank r holds its stages' weights and all that the stages up to h hold of the
microbatch. Where that is more than its capacity, there is no schedule at all. A stage of life 0 may
give back at t what it acquires at t. life(g) falls along the stages, so h is the highest with one,
and stages without are left out.

The last two are for pipelines whose microbatches are alike; bidirectional ones are for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.extension import backwards_of
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.one_machine import NO_PATH, paths_along


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
    rank = claim.rank
    if claim.objective != "makespan":
        return f"what a rank computes bounds the makespan, not {claim.objective!r}"
    if not 0 <= rank < pipeline.num_ranks:
        return f"rank {rank} is none of the pipeline's {pipeline.num_ranks}"
    if pipeline.is_bidirectional:
        return "its stages stand on two ranks each"
    shown, is_about_work = ShownByRanks(pipeline), isinstance(claim, RankWork)
    if not is_about_work and (allowed is not None or not is_alike(pipeline)):
        return "what a rank holds depends on choices"
    if isinstance(claim, NoRoom):
        room = shown.room[rank]
        return None if room is not None and room < 0 else f"rank {rank} has room for one microbatch"
    found = (shown.work if is_about_work else shown.memory)[rank]
    return None if claim.bound <= found else f"rank {rank} shows {found} ticks, not {claim.bound}"


def is_alike(pipeline: Pipeline) -> bool:
    """Whether no choice tells the microbatches of a stage apart, or adds tasks to them."""
    rows = pipeline.split_backward
    is_even = isinstance(rows, bool) or all(len(set(row)) == 1 for row in rows)
    return is_even and not pipeline.is_bidirectional and pipeline.choices.is_of_stages


def copied_problem(pipeline: Pipeline) -> tuple[Problem, int]:
    """A problem of which the pipeline's has so many copies, with precedences between them."""
    if not is_alike(pipeline):
        return pipeline.problem(), 1
    flags = pipeline.split_backward
    one = flags if isinstance(flags, bool) else tuple(row[:1] for row in flags)
    sample = pipeline.with_changes(num_microbatches=1, split_backward=one)
    return sample.problem(), pipeline.num_microbatches


class ShownByRanks:
    """What each rank of a pipeline shows. Precondition: no stage stands on two ranks.

    ``work``: ticks of ``RankWork``.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.problem, self.copies = copied_problem(pipeline)
        homes, ranks = self.problem.occupancy, range(pipeline.num_ranks)
        own = [homes.task[homes.resource == rank] for rank in ranks]
        nothing = [NO_PATH] * self.problem.num_tasks  # of precedences in a circle
        heads, tails = paths_along(self.problem, self.problem.edges, ranks) or (nothing, nothing)
        self.ends = [min(heads[t] for t in each) + min(tails[t] for t in each) for each in own]
        each = [self.copies * int(self.problem.duration[tasks].sum()) for tasks in own]
        self.work = [ends + ticks for ends, ticks in zip(self.ends, each, strict=True)]

    @property
    def memory(self) -> list[int]:
        """Ticks of ``RankMemory``, by rank; 0 without a limit. Precondition: ``is_alike``."""
        (homes, held, lives), found = self._stays, []
        volume = (self.copies * held.astype(object) * lives).sum(axis=1)
        for rank, ends in enumerate(self.ends):
            total, room, units = volume[homes == rank].sum(), self._left(rank), held[homes == rank]
            if room is not None and len(units) == 1:  # whole activations
                room -= room % max(1, int(units.max()))
            found.append(ends - -total // room if room and min(room, total) > 0 else 0)
        return found

    @property
    def room(self) -> list[int | None]:
        """Units that each rank has beside what ``NoRoom`` counts; None: no limit. As ``memory``."""
        homes, held, lives = self._stays
        of_stage = held.sum(axis=1) * (lives[:, -1] > 0)
        return [self._left(r, int(of_stage[homes == r].sum())) for r in range(len(self.ends))]

    def _left(self, rank: int, held: int = 0) -> int | None:
        """What the rank's memory has beside its weights and ``held`` units; None: no limit."""
        store = self.problem.stores[rank]
        return None if store.capacity is None else store.capacity - store.base - held

    @cached_property
    def _stays(self) -> tuple[Ints, Ints, Ints]:
        """The rank of each stage, and what one microbatch holds, and how long, by its slices."""
        problem, actions = self.problem, self.problem.actions  # tasks by stage, then slice
        forward = np.flatnonzero(actions.kind == Kind.F).reshape(-1, 1 + int(actions.slice.max()))
        homes = problem.rank_of_task[forward[:, 0]]
        if not actions.is_kind(Kind.B, Kind.I).any():  # a forward keeps nothing when it ends
            return homes, 0 * forward, 0 * forward
        backward = backwards_of(problem, forward.ravel()).reshape(forward.shape)
        return homes, _held(problem, forward, backward), _lives(problem, forward, backward)


def _held(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """Units that one microbatch holds until its B or I ends, by stage and slice."""
    task, at_end, delta = problem.events.task, problem.events.at_end, problem.events.delta
    place = problem.actions.stage[task], problem.actions.slice[task]
    is_late = problem.actions.is_kind(Kind.W)[task] | (task == backward[place]) & at_end
    early = np.where(is_late, 0, np.minimum(delta, 0))
    held = np.zeros_like(forward)
    np.add.at(held, place, np.where((task == forward[place]) & ~at_end, delta, early))
    return np.maximum(held, 0)


def _lives(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """Ticks at least from the start of F to the end of B or I, by stage and slice."""
    edges, ticks = problem.edges, problem.duration
    ends = zip(edges.before.tolist(), edges.after.tolist(), strict=True)
    lag = dict(zip(ends, edges.lag.tolist(), strict=True))
    lives = ticks[forward] + ticks[backward]
    for g, k in np.ndindex(len(lives) - 1, lives.shape[1]):  # what crosses the boundary behind g
        there, back = forward[g : g + 2, k].tolist(), backward[g : g + 2, k].tolist()
        lives[g, k] += lag[there[0], there[1]] + lag[back[1], back[0]]
    return np.asarray(np.cumsum(lives[::-1], axis=0)[::-1], dtype=np.int64)
