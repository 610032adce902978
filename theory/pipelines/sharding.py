"""Collectives: parameters gathered, freed and gradients reduced on each rank's NIC (ZeRO 1 to 3).

A rank *visits* its chunks, forwards for the microbatches enqueued together and backwards for those
dequeued together, several in a row. With R enqueue and S dequeue operations and M chunks it makes
R*M forward visits, operation by operation and chunk 0 first, and S*M backward visits, operation by
operation and chunk M-1 first (PipeMesh section III-B). Forward and backward visits may overlap in
time; those of one direction come one after another.

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

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import StretchedWait, extended
from bubbleproof.theory.pipelines.stage_numbers import PerStage, stage_numbers
from bubbleproof.theory.pipelines.value_types import Expectation, OneOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Visit ``number`` of a rank in one direction: ``stage`` for the microbatches ``first:end``."""

    rank: int
    number: int
    is_forward: bool
    operation: int
    stage: int
    first: int
    end: int


def visits(
    stage_ranks: tuple[int, ...], enqueue: tuple[int, ...], dequeue: tuple[int, ...]
) -> list[Visit]:
    """All visits of all ranks, by rank, forward ones first, in order.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    enqueue, dequeue
        The microbatches of each visit of a stage, forwards and backwards.
    """
    found = []
    for rank in range(max(stage_ranks) + 1):
        stages = [g for g, home in enumerate(stage_ranks) if home == rank]
        for is_forward, sizes in ((True, enqueue), (False, dequeue)):
            ends, chunks = [*accumulate(sizes)], stages if is_forward else stages[::-1]
            found += [
                Visit(
                    rank=rank,
                    number=number,
                    is_forward=is_forward,
                    operation=operation,
                    stage=stage,
                    first=ends[operation] - sizes[operation],
                    end=ends[operation],
                )
                for number, (operation, stage) in enumerate(product(range(len(sizes)), chunks))
            ]
    return found


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
        """(enqueue, dequeue) with all microbatches at once where None was given.

        Parameters
        ----------
        num_microbatches
            How many the pipeline has.

        Returns
        -------
        tuple[tuple[int, ...], tuple[int, ...]]
            The microbatches of each visit of a stage, forwards and backwards.
        """
        whole = (num_microbatches,)
        return self.enqueue or whole, self.dequeue or whole

    def require_samples(self, num_microbatches: int) -> None:
        """Raise ``ValueError`` where a sequence does not go through the microbatches.

        Parameters
        ----------
        num_microbatches
            How many the pipeline has; each sequence adds up to it.
        """
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
    return [
        Collective(
            kind=kind,
            visit=visit,
            slice=visit.operation + (0 if visit.is_forward else enqueues),
            ticks=ticks,
        )
        for visit in listed
        for kind, ticks in _needs(visit, sharding, last)
    ]


def _needs(visit: Visit, sharding: Sharding, last: int) -> Iterator[tuple[Kind, int]]:
    """The collectives of a visit with their ticks; ``last``: the last dequeue operation."""
    again = sharding.gather if sharding.regather is None else sharding.regather
    partly = sharding.reduce if sharding.rereduce is None else sharding.rereduce
    is_copied = not visit.is_forward and visit.number == 0
    if visit.is_forward and visit.operation == 0:
        yield Kind.UNSHARD, sharding.gather
    elif sharding.zero == 3:
        yield Kind.UNSHARD, 0 if is_copied else again
    if sharding.zero == 3:
        yield Kind.RESHARD, 0
    if not visit.is_forward and (visit.operation == last or sharding.zero >= 2):
        yield Kind.REDUCE_GRAD, sharding.reduce if visit.operation == last else partly


def with_collectives(problem: Problem, sharding: Sharding, _: object = None) -> Problem:
    """The problem with its collectives; each rank gets a NIC and a buffer manager.

    Preconditions: store r is the memory of rank r, every stage runs on one rank, and no F and B are
    one task yet. Raises ``ValueError`` for memory units that are neither one number nor one per
    stage.
    """
    homes = problem.stage_to_rank
    count = 1 + int(problem.actions.microbatch.max())
    listed = visits(tuple(homes[g] for g in sorted(homes)), *sharding.sequences(count))
    needed = collectives(listed, sharding)
    ranks = range(problem.num_ranks)
    task = problem.num_tasks + np.arange(len(needed))
    rank, stage, kind, number, ticks = np.array(
        [(c.visit.rank, c.visit.stage, c.kind, c.slice, c.ticks) for c in needed], dtype=np.int64
    ).T
    gathers, frees, reduces = (
        kind == int(k) for k in (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
    )
    row_of = {visit: row for row, visit in enumerate(listed)}
    row = np.array([row_of[c.visit] for c in needed])
    collective = np.full((len(Kind), len(listed) + 1), NONE)  # ``NONE`` is the last place
    collective[kind, row] = task
    by = _Computations(problem, listed)
    held = _units("parameter", sharding.parameter if sharding.zero == 3 else 0, len(homes))[stage]
    shared = _units("gradient", sharding.gradient if sharding.zero >= 2 else 0, len(homes))[stage]
    return extended(
        problem,
        actions=ActionTable.of(kind, stage, NONE, number),
        duration=ticks,
        homes=[(task, len(problem.resources) + 2 * rank + frees)],
        waits=_waits(by, collective, listed, sharding.zero),
        changes=[
            (task[gathers], False, rank[gathers], held[gathers]),
            (task[frees], True, rank[frees], -held[frees]),
            (by.first[row[reduces]], False, rank[reduces], shared[reduces]),
            (task[reduces], True, rank[reduces], -shared[reduces]),
        ],
        resources=[
            Resource(name=f"{name} of rank {r}") for r in ranks for name in ("NIC", "buffers")
        ],
    )


def _units(name: str, given: PerStage, num_stages: int) -> Ints:
    """Memory units as a column, shape (num_stages,)."""
    return np.array(stage_numbers(name, given, num_stages=num_stages, minimum=0))


class _Computations:
    """The computations in the order of their visits; these are named by their place in a list.

    Forwards of a visit go by microbatch and slice, backwards from the last slice on. ``once`` is
    for each the visit in which what its stage needs once is done: the first forward visit, or the
    last backward one.
    """

    def __init__(self, problem: Problem, listed: list[Visit]) -> None:
        actions, homes = problem.actions, problem.stage_to_rank
        at = np.zeros((2, len(homes), 1 + int(actions.microbatch.max())), dtype=np.int64)
        for row, visit in enumerate(listed):
            at[int(visit.is_forward), visit.stage, visit.first : visit.end] = row
        task = np.flatnonzero(actions.is_kind(*FORWARDS, *READERS, *ADDERS))
        way = (actions.kind[task] == Kind.F).astype(np.int64)
        stage, microbatch = actions.stage[task], actions.microbatch[task]
        slices = np.where(way == 1, actions.slice[task], -actions.slice[task])
        order = np.lexsort((task, slices, microbatch, at[way, stage, microbatch]))
        self.task, self.kind = task[order], actions.kind[task][order]
        self.visit = at[way, stage, microbatch][order]
        self.once = at[way, stage, way - 1][order]
        is_pass = np.isin(self.kind, BACKWARDS)
        self.first = np.full(len(listed), NONE)  # B or I of each visit
        self.first[self.visit[is_pass][::-1]] = self.task[is_pass][::-1]


def _waits(
    by: _Computations, collective: Ints, listed: list[Visit], zero: int
) -> list[StretchedWait]:
    """The precedences, by collective. ``collective``: the task of each kind in each visit."""
    gather, free, reduce = (collective[k] for k in (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD))
    reads = np.isin(by.kind, (*FORWARDS, *READERS))
    adds, passes = np.isin(by.kind, ADDERS), np.isin(by.kind, BACKWARDS)
    gathered, reduced = (by.visit if zero >= level else by.once for level in (3, 2))
    earlier = np.array([row - 2 if v.number >= 2 else NONE for row, v in enumerate(listed)])
    pieces = [
        (gather[gathered][reads], by.task[reads]),
        (free[earlier], gather[:-1]),
        (by.task[reads], free[by.visit][reads]),
        (by.task[adds], reduce[reduced][adds]),
    ]
    served = [np.maximum(*piece) for piece in pieces]  # by its number the collective comes last
    if zero >= 2:
        others = passes & (by.task != by.first[by.visit])
        pieces.append((by.first[by.visit][others], by.task[others]))
        pieces.append((reduce[earlier[by.visit]][passes], by.task[passes]))
        served += [reduce[by.visit][others], pieces[-1][0]]
    before, after = (np.concatenate([piece[side] for piece in pieces]) for side in (0, 1))
    turn = np.repeat(np.arange(len(pieces)), [len(piece[0]) for piece in pieces])
    order = np.lexsort((turn, np.concatenate(served)))
    order = order[(before[order] != NONE) & (after[order] != NONE)]
    return [(before[order], after[order])]


ShardingChoice = Annotated[
    Sharding | None,
    Expectation("a Sharding or None"),
    ChoiceKind(turn=5, change=with_collectives, adds_tasks=True),
]
