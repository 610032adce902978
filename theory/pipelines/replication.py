"""Replication: the collectives that data-parallel replicas of any schedule need, put into it.

A schedule whose problem has no collectives gets them where its orders leave room for them. What the
papers say of forwards and full backwards (``theory.pipelines.sharding``,
``theory.pipelines.sharding``) is said here of every computation, by what each does with a
stage's parameters and gradient:

    F           reads the parameters
    R, B, I     read them too, for a backward
    B, I, W     add to the gradient: B all, W the weights of GEMMs, I the others
    W           reads no parameters: it multiplies activations and output gradients

On one rank a *forward visit* is a longest run of its Fs that are of one stage, a *backward visit*
one of its Rs, Bs and Is, and a *gradient visit* one of its Bs and Ws, each with the other
computations left out. (PipeMesh's visits are such runs; with one chunk its visits of one direction
are one run.) By the level of the parameters a stage has, on each of its ranks,

0   REDUCE_GRAD after all that adds to its gradient: plain data parallelism;
1   also UNSHARD before all that reads its parameters;
2   REDUCE_GRAD after every gradient visit. It takes what has been added since the one before: one
    gradient at a time, also where an I adds to it visits before its W;
3   also UNSHARD before every forward and every backward visit, and RESHARD after it.

All take 0 ticks, at the start of the first or the end of the last computation that they serve, so
no start changes; UNSHARD and REDUCE_GRAD stand on the rank's NIC, RESHARD with its buffers. Memory:
UNSHARD acquires the parameters of level 3 and RESHARD gives them back; the first computation that
adds to a gradient of level 2 or 3 acquires it at its start, and REDUCE_GRAD gives it back. UNSHARDs
of a stage are numbered over its ranks, forward visits before backward ones, a RESHARD like its
UNSHARD, REDUCE_GRADs by themselves from 2 on (0 and 1 are those among the ranks of one replica, in
a training); ``slice`` is the number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.extension import StretchedChange, StretchedWait, extended
from bubbleproof.theory.pipelines.programs.messages import parts_of
from bubbleproof.theory.pipelines.sharding import ADDERS, FORWARDS, READERS

LEVELS = (0, 1, 2, 3)
FIRST_REDUCTION = 2
ENDING = (Kind.B, Kind.W)  # after which nothing more of their microbatch is added


class Use(NamedTuple):
    """A computation, or one side of an overlapped pair."""

    kind: Kind
    stage: int
    microbatch: int
    slice: int
    part: int = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCollective:
    """A collective of a stage on a rank, what it serves in order, and when it runs (ticks).

    ``tasks`` are the tasks of ``uses``; the first that a REDUCE_GRAD serves makes room for the
    gradient. Tasks and start are left out of what a problem has already.
    """

    kind: Kind
    stage: int
    rank: int
    number: int
    uses: tuple[Use, ...]
    tasks: tuple[int, ...] = ()
    start: int = 0

    @property
    def action(self) -> Action:
        return Action(stage=self.stage, kind=self.kind, slice=self.number)


class _Row(NamedTuple):
    """One use on a rank: its task, its start and its end in ticks."""

    use: Use
    task: int
    begin: int
    end: int


def placed_collectives(problem: Problem, schedule: Schedule, level: int) -> list[PlacedCollective]:
    """The collectives that a schedule's parameters of level 0 to 3 need, by rank.

    Rows of the schedule that name no task of the problem get none.

    Parameters
    ----------
    level
        The ZeRO level of all parameters: 0, 1, 2 or 3.

    Raises
    ------
    ValueError
        For another level.
    """
    if level not in LEVELS:
        raise ValueError(f"a ZeRO level must be 0, 1, 2 or 3, got {level}")
    number: Counter[tuple[Kind, int]] = Counter()
    found = []
    for rank, rows in enumerate(_rows(problem, schedule)):
        for kind, served in _needed(rows, level):
            stage = served[0].use.stage
            n = number[kind, stage]
            number[kind, stage] += 1
            if kind is Kind.REDUCE_GRAD:
                n += FIRST_REDUCTION
            found.append(_placed(kind, rank, n, served))
            if kind is Kind.UNSHARD and level == 3:
                found.append(_placed(Kind.RESHARD, rank, n, served))
    return found


def with_placed(problem: Problem, placed: Sequence[PlacedCollective]) -> Problem:
    """The problem with the collectives as tasks of 0 ticks, without memory (``memory_changes``)."""
    p, first = problem.num_ranks, len(problem.resources)
    task = problem.num_tasks + np.arange(len(placed))
    resource = np.array([first + 2 * c.rank + (c.kind is Kind.RESHARD) for c in placed])
    names = [(f"NIC of rank {r}", f"buffers of rank {r}") for r in range(p)]
    waits: list[StretchedWait] = []
    for number, collective in zip(task.tolist(), placed, strict=True):
        served = np.unique(np.array(collective.tasks))
        own = np.full_like(served, number)
        waits.append((own, served) if collective.kind is Kind.UNSHARD else (served, own))
        if collective.kind is Kind.REDUCE_GRAD:
            updates = _updates(problem, collective.stage)
            waits.append((np.full_like(updates, number), updates))
    return extended(
        problem,
        actions=ActionTable.from_actions(c.action for c in placed),
        duration=np.zeros(len(placed), dtype=np.int64),
        homes=[(task, resource)],
        waits=waits,
        resources=[Resource(name=name) for pair in names for name in pair],
    )


def schedule_with(
    problem: Problem, schedule: Schedule, placed: Sequence[PlacedCollective]
) -> Schedule:
    """The schedule with a row for each collective. ``problem``: the one without them."""
    first = len(problem.resources)
    rows = sorted(placed, key=lambda c: (c.start, c.kind is not Kind.UNSHARD))
    resource = [first + 2 * c.rank + (c.kind is Kind.RESHARD) for c in rows]
    program = schedule.program
    return Schedule.grouped(
        actions=ActionTable.concatenate(
            [program.actions, ActionTable.from_actions(c.action for c in rows)]
        ),
        resource=np.concatenate([program.resource, np.array(resource, dtype=np.int64)]),
        start=np.concatenate([schedule.start, np.array([c.start for c in rows], dtype=np.int64)]),
    )


def memory_changes(
    problem: Problem,
    placed: Sequence[PlacedCollective],
    parameter: Sequence[int],
    gradient: Sequence[int],
) -> list[StretchedChange]:
    """What the collectives acquire and release; units by stage, of level 3 and of 2 and 3.

    ``problem`` is the one with the collectives, and store r the memory of rank r.

    Parameters
    ----------
    placed
        The collectives of all ranks.
    parameter
        Units that an UNSHARD brings to each stage, those of the parameters of level 3.
    gradient
        Units that a REDUCE_GRAD takes from each stage, those of the gradients of levels 2 and 3.
    """
    task = problem.locate(ActionTable.from_actions(c.action for c in placed)).tolist()
    rows: dict[tuple[bool, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, c in zip(task, placed, strict=True):
        if c.kind is Kind.UNSHARD:
            rows[False, 1].append((number, c.rank, parameter[c.stage]))
        elif c.kind is Kind.RESHARD:
            rows[True, -1].append((number, c.rank, -parameter[c.stage]))
        else:
            rows[False, 1].append((c.tasks[0], c.rank, gradient[c.stage]))
            rows[True, -1].append((number, c.rank, -gradient[c.stage]))
    changes: list[StretchedChange] = []
    for (at_end, _), own in rows.items():
        tasks, stores, deltas = np.array(own, dtype=np.int64).T
        changes.append((tasks, at_end, stores, deltas))
    return changes


def _placed(kind: Kind, rank: int, number: int, served: Sequence[_Row]) -> PlacedCollective:
    is_before = kind is Kind.UNSHARD
    return PlacedCollective(
        kind=kind,
        stage=served[0].use.stage,
        rank=rank,
        number=number,
        uses=tuple(row.use for row in served),
        tasks=tuple(row.task for row in served),
        start=min(r.begin for r in served) if is_before else max(r.end for r in served),
    )


def _rows(problem: Problem, schedule: Schedule) -> list[list[_Row]]:
    """The uses on each rank in its order."""
    found: list[list[_Row]] = [[] for _ in range(problem.num_ranks)]
    located = problem.locate(schedule.program.actions)
    ends = (schedule.start + problem.ticks(located)).tolist()
    columns = zip(
        schedule.program.resource.tolist(),
        located.tolist(),
        schedule.start.tolist(),
        ends,
        schedule.program.actions,
        strict=True,
    )
    for resource, task, begin, end, action in columns:
        if resource < problem.num_ranks and task != NONE:
            found[resource] += [_Row(use, task, begin, end) for use in uses_of(action)]
    return found


def uses_of(action: Action) -> tuple[Use, ...]:
    """The computation as one use, an overlapped pair as its F and its B."""
    return tuple(
        Use(part.kind, part.stage, part.microbatch, part.slice, part.part)
        for part in parts_of(action)
    )


def _needed(rows: Sequence[_Row], level: int) -> Iterator[tuple[Kind, list[_Row]]]:
    """UNSHARD and REDUCE_GRAD of one rank with what each serves."""
    if level == 3:
        for kinds in (FORWARDS, READERS):
            yield from ((Kind.UNSHARD, run) for run in _runs(rows, kinds))
    elif level:
        readers = (*FORWARDS, *READERS)
        yield from ((Kind.UNSHARD, own) for own in _by_stage(rows, readers))
    sums = _by_stage(rows, ADDERS) if level < 2 else _sums(rows)
    yield from ((Kind.REDUCE_GRAD, own) for own in sums)


def _runs(rows: Sequence[_Row], kinds: tuple[Kind, ...]) -> list[list[_Row]]:
    """The visits: longest runs of one stage among the rows of some kinds."""
    chosen = (row for row in rows if row.use.kind in kinds)
    return [list(run) for _, run in groupby(chosen, key=lambda row: row.use.stage)]


def _by_stage(rows: Sequence[_Row], kinds: tuple[Kind, ...]) -> list[list[_Row]]:
    """All rows of some kinds, stage by stage."""
    found: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.use.kind in kinds:
            found[row.use.stage].append(row)
    return [found[stage] for stage in sorted(found)]


def _sums(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """What each REDUCE_GRAD takes: all since the one before, to the end of its gradient visit."""
    last = {run[-1] for run in _runs(rows, ENDING)}
    added: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.use.kind in ADDERS:
            added[row.use.stage].append(row)
        if row in last:
            yield added.pop(row.use.stage)
    yield from added.values()  # of a schedule that lacks tasks


def _updates(problem: Problem, stage: int) -> Ints:
    """What takes the whole gradient of a stage: its STEP, and the OFFLOAD that serves one."""
    actions = problem.actions
    own = actions.stage == stage
    is_stepped = (own & actions.is_kind(Kind.STEP)).any()
    found: Ints = np.flatnonzero(own & is_stepped & actions.is_kind(Kind.STEP, Kind.OFFLOAD))
    return found
