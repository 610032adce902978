"""Collectives: parameters gathered, freed and gradients reduced on each rank's NIC (ZeRO 1 to 3).

A rank visits its chunks, forwards for the microbatches enqueued together and backwards for those
dequeued together (``theory.pipelines.visits``).
``Sharding.zero`` says which collectives a stage g needs (sections II-A and III-C):

1   UNSHARD before its first forward visit (all parameters, from the optimizer's shards) and
    REDUCE_GRAD after its last backward visit (all gradients);
2   also REDUCE_GRAD after every other backward visit;
3   also UNSHARD before every other forward visit and every backward visit, and RESHARD after every
    visit. A rank's first backward visit copies the parameters of the forward: 0 ticks.

A forward visit reads parameters in its Fs; a backward visit reads them in its Bs and Is and in the
Rs of what it recomputes, and adds to the gradient in its Bs, Is and Ws. Precedences, with visits n
of one rank and direction: UNSHARD(n) before what reads, RESHARD(n) after it, REDUCE_GRAD(n) after
what adds. An UNSHARD without RESHARD comes before all forwards of its stage, REDUCE_GRAD also after
the visits without one. UNSHARD and REDUCE_GRAD occupy the rank's NIC; RESHARD takes 0 ticks of the
rank's buffer manager. What is sharded lies in two buffers, of which one computes while the other
communicates: UNSHARD(n+2) comes after RESHARD(n) (ZeRO-3), the Bs and Is of visit n+2 after
REDUCE_GRAD(n) (ZeRO-2 and 3). Memory: UNSHARD acquires ``parameter`` units at its start and RESHARD
gives them back (ZeRO-3); the first B or I of a visit (of its first microbatch, the last slice),
which the others wait for, acquires ``gradient`` units and REDUCE_GRAD gives them back (ZeRO-2 and
3). What is never sharded is static: under ZeRO-1 a gradient lies whole where it adds up, so no
computation waits for a reduction, as in Megatron-LM's distributed optimizer.

A stage may have several collectives of one kind; their ``slice`` numbers them: forward visits by
enqueue operation, then backward visits by dequeue operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind, ChoiceSetting
from bubbleproof.theory.pipelines.extension import StretchedWait, extended
from bubbleproof.theory.pipelines.stage_numbers import PerStage, stage_numbers
from bubbleproof.theory.pipelines.value_types import Expectation, OneOf
from bubbleproof.theory.pipelines.visits import Visit, visits

FORWARDS, BACKWARDS = (Kind.F,), (Kind.B, Kind.I)
READERS, ADDERS = (Kind.R, Kind.B, Kind.I), (Kind.B, Kind.I, Kind.W)  # of a backward visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """The collectives of ZeRO: ticks, and memory units once or per stage.

    ``enqueue`` and ``dequeue`` are how many microbatches each enqueue and dequeue operation takes,
    in order; None takes all of them at once.

    ``gather`` and ``reduce`` are the ticks of all parameters and gradients of a stage (C_DP);
    ``regather`` and ``rereduce`` those of the ZeRO-3 parameters (C_DP^p) and of the ZeRO-2 and 3
    gradients (C_DP^g), ``gather`` and ``reduce`` where None. ``parameter`` and ``gradient`` are one
    number, or one per stage. Raises ``ValueError`` for a ``zero`` that is not 1, 2 or 3 and for
    numbers below 0.
    """

    zero: Annotated[int, OneOf((1, 2, 3))]
    gather: int
    reduce: int
    regather: int | None = None
    rereduce: int | None = None
    parameter: int | tuple[int, ...] = 0
    gradient: int | tuple[int, ...] = 0
    enqueue: tuple[int, ...] | None = None
    dequeue: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.zero not in (1, 2, 3):
            raise ValueError(f"zero must be 1, 2 or 3, got {self.zero}")
        for name in ("gather", "reduce", "regather", "rereduce", "parameter", "gradient"):
            value = getattr(self, name)
            lowest = min(value, default=0) if isinstance(value, tuple) else value
            if lowest is not None and lowest < 0:
                raise ValueError(f"{name} of a sharding must be 0 or more, got {lowest}")

    def sequences(self, num_microbatches: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(enqueue, dequeue) with all microbatches at once where None was given."""
        whole = (num_microbatches,)
        return self.enqueue or whole, self.dequeue or whole

    def require_samples(self, num_microbatches: int) -> None:
        """Raise ``ValueError`` where a sequence does not go through the microbatches."""
        sequences = self.sequences(num_microbatches)
        for name, sizes in zip(("enqueue", "dequeue"), sequences, strict=True):
            if min(sizes) < 1 or sum(sizes) != num_microbatches:
                raise ValueError(
                    f"{name} of a sharding must be numbers of 1 or more that add up to the "
                    f"{num_microbatches} microbatches, got {','.join(map(str, sizes))}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of a visit; ``slice`` tells equal kinds of a stage apart."""

    kind: Kind
    visit: Visit
    slice: int
    ticks: int


def collectives(listed: list[Visit], sharding: Sharding) -> list[Collective]:
    """The collectives that ``sharding`` asks for, by visit. ``listed``: all of ``visits``."""
    enqueues = 1 + max(visit.operation for visit in listed if visit.is_forward)
    last = max(visit.operation for visit in listed if not visit.is_forward)
    found = []
    for visit in listed:
        number = visit.operation + (0 if visit.is_forward else enqueues)
        needs = (
            _forward_needs(visit, sharding)
            if visit.is_forward
            else _backward_needs(visit, sharding, is_last=visit.operation == last)
        )
        found += [
            Collective(kind=kind, visit=visit, slice=number, ticks=ticks) for kind, ticks in needs
        ]
    return found


def _forward_needs(visit: Visit, sharding: Sharding) -> list[tuple[Kind, int]]:
    again = sharding.gather if sharding.regather is None else sharding.regather
    needs = []
    if visit.operation == 0 or sharding.zero == 3:
        needs.append((Kind.UNSHARD, sharding.gather if visit.operation == 0 else again))
    if sharding.zero == 3:
        needs.append((Kind.RESHARD, 0))
    return needs


def _backward_needs(visit: Visit, sharding: Sharding, *, is_last: bool) -> list[tuple[Kind, int]]:
    gather = sharding.gather if sharding.regather is None else sharding.regather
    partly = sharding.reduce if sharding.rereduce is None else sharding.rereduce
    needs = []
    if sharding.zero == 3:
        needs += [(Kind.UNSHARD, gather if visit.number else 0), (Kind.RESHARD, 0)]
    if is_last or sharding.zero >= 2:
        needs.append((Kind.REDUCE_GRAD, sharding.reduce if is_last else partly))
    return needs


def with_collectives(problem: Problem, sharding: Sharding) -> Problem:
    """The problem with its collectives; each rank gets a NIC and a buffer manager.

    Preconditions: store r is the memory of rank r, every stage runs on one rank, and no F and B are
    one task yet. Raises ``ValueError`` for memory units that are neither one number nor one per
    stage.
    """
    homes = problem.stage_to_rank
    count = 1 + int(problem.actions.microbatch.max())
    listed = visits(tuple(homes[g] for g in sorted(homes)), *sharding.sequences(count))
    needed = collectives(listed, sharding)
    p, beside = problem.num_ranks, len(problem.resources)
    task = problem.num_tasks + np.arange(len(needed))
    rank = np.array([c.visit.rank for c in needed])
    kind = np.array([int(c.kind) for c in needed])
    builder = _Waits(problem, sharding.zero, needed, listed)
    gathers, frees, reduces = (
        kind == int(k) for k in (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
    )
    first = builder.first_backwards(reduces)
    stage = np.array([c.visit.stage for c in needed])
    num_stages = len(homes)
    held = _units("parameter", sharding.parameter if sharding.zero == 3 else 0, num_stages)[stage]
    shared = _units("gradient", sharding.gradient if sharding.zero >= 2 else 0, num_stages)[stage]
    return extended(
        problem,
        actions=ActionTable.of(
            kind,
            stage,
            NONE,
            np.array([c.slice for c in needed]),
        ),
        duration=np.array([c.ticks for c in needed]),
        homes=[(task, beside + 2 * rank + frees)],
        waits=builder.waits(),
        changes=[
            (task[gathers], False, rank[gathers], held[gathers]),
            (task[frees], True, rank[frees], -held[frees]),
            (first, False, rank[reduces], shared[reduces]),
            (task[reduces], True, rank[reduces], -shared[reduces]),
        ],
        resources=[
            Resource(name=f"{name} of rank {r}") for r in range(p) for name in ("NIC", "buffers")
        ],
    )


def _units(name: str, given: PerStage, num_stages: int) -> Ints:
    """Memory units as a column, shape (num_stages,)."""
    return np.array(stage_numbers(name, given, num_stages=num_stages, minimum=0))


class Computations:
    """The computations of a problem by what they do with a stage's parameters and gradient."""

    def __init__(self, problem: Problem) -> None:
        actions = problem.actions
        self._count = 1 + int(actions.microbatch.max())
        self._by: dict[tuple[Kind, ...], tuple[Ints, Ints]] = {}
        for kinds in (FORWARDS, BACKWARDS, READERS, ADDERS):
            task = np.flatnonzero(actions.is_kind(*kinds))
            slices = actions.slice[task] if kinds == FORWARDS else -actions.slice[task]
            key = actions.stage[task] * self._count + actions.microbatch[task]
            order = np.lexsort((task, slices, key))
            self._by[kinds] = key[order], task[order]

    def of(self, visit: Visit, backward: tuple[Kind, ...] = BACKWARDS) -> Ints:
        """The Fs of a forward visit, or what ``backward`` names of a backward one.

        By microbatch; forwards by slice, backwards from the last slice on.
        """
        keys, tasks = self._by[FORWARDS if visit.is_forward else backward]
        ends = visit.stage * self._count + np.array([visit.first, visit.end])
        first, end = np.searchsorted(keys, ends)
        return tasks[first:end]


class _Waits:
    """The precedences of collectives; see the module's text."""

    def __init__(
        self, problem: Problem, zero: int, needed: list[Collective], listed: list[Visit]
    ) -> None:
        self.problem, self.zero, self.needed = problem, zero, needed
        self.computations = Computations(problem)
        self.task = {
            (c.kind, c.visit.rank, c.visit.is_forward, c.visit.number): problem.num_tasks + row
            for row, c in enumerate(needed)
        }
        self.visit = {(v.rank, v.is_forward, v.number): v for v in listed}
        self.alike: dict[tuple[int, bool], list[Visit]] = {}
        for visit in listed:
            self.alike.setdefault((visit.stage, visit.is_forward), []).append(visit)

    def first_backwards(self, reduces: Bools) -> Ints:
        """The first backward of the visit of each REDUCE_GRAD."""
        chosen = np.flatnonzero(reduces).tolist()
        return np.array(
            [self.computations.of(self.needed[row].visit)[0] for row in chosen], dtype=np.int64
        )

    def waits(self) -> list[StretchedWait]:
        found = []
        for row, collective in enumerate(self.needed):
            task, visit = self.problem.num_tasks + row, collective.visit
            if collective.kind is Kind.UNSHARD:
                users = self._served(visit)
                found.append((np.full_like(users, task), users))
                found += self._after_reshard(visit, task)
            elif collective.kind is Kind.RESHARD:
                readers = self.computations.of(visit, READERS)
                found.append((readers, np.full_like(readers, task)))
            else:
                summed = self._summed(visit)
                found.append((summed, np.full_like(summed, task)))
                found += self._in_buffer(visit, task)
        return found

    def _served(self, visit: Visit) -> Ints:
        """What needs a visit's UNSHARD: its readers, or all forwards where it is never freed."""
        if (Kind.RESHARD, visit.rank, visit.is_forward, visit.number) in self.task:
            return self.computations.of(visit, READERS)
        return self._tasks_of(self.alike[visit.stage, visit.is_forward], READERS)

    def _summed(self, visit: Visit) -> Ints:
        """What a visit's REDUCE_GRAD needs: its own tasks and those that nothing else reduces."""
        lone = [
            v
            for v in self.alike[visit.stage, visit.is_forward]
            if (Kind.REDUCE_GRAD, v.rank, v.is_forward, v.number) not in self.task
        ]
        return self._tasks_of([*lone, visit], ADDERS)

    def _tasks_of(self, chosen: list[Visit], kinds: tuple[Kind, ...]) -> Ints:
        return np.concatenate([self.computations.of(visit, kinds) for visit in chosen])

    def _after_reshard(self, visit: Visit, task: int) -> list[StretchedWait]:
        key = (Kind.RESHARD, visit.rank, visit.is_forward, visit.number - 2)
        return [(np.array([self.task[key]]), np.array([task]))] if key in self.task else []

    def _in_buffer(self, visit: Visit, task: int) -> list[StretchedWait]:
        """What waits for the buffer of a gradient: its visit's other backwards, and visit n+2."""
        if self.zero == 1:
            return []
        own = self.computations.of(visit)
        found = [(np.full_like(own[1:], own[0]), own[1:])]
        later = self.visit.get((visit.rank, False, visit.number + 2))
        if later is not None:
            own = self.computations.of(later)
            found.append((np.full_like(own, task), own))
        return found


def _changed(problem: Problem, choice: Sharding, _setting: ChoiceSetting) -> Problem:
    return with_collectives(problem, choice)


def _listed(choice: Sharding) -> dict[str, object]:
    return {"zero": choice.zero}


ShardingChoice = Annotated[
    Sharding | None,
    Expectation("a Sharding or None"),
    ChoiceKind(turn=5, change=_changed, adds_tasks=True, listed=_listed),
]
