"""Evictions: saved activations that wait on a peer rank until their backward needs them.

An eviction of (stage, microbatch) adds two tasks to a problem, EVICT and LOAD. Both occupy only the
link between the evictor (``source``) and the acceptor (``target``): one unary resource per
unordered pair of ranks, so a link carries one transfer at a time, in either direction (half
duplex, BPipe section 3.5). With F and B the forward and backward (B or I) of that stage and
microbatch, and a the units that F leaves in the store of the source:

- precedences: EVICT after F, LOAD after EVICT, B after LOAD;
- memory: EVICT adds a to the target at its start and takes a from the source at its end; LOAD
  adds a to the source at its start and takes a from the target at its end. So a transfer in flight
  counts on both ends (DESIGN section 3).

``EvictingPipeline`` is a pipeline with evictions among its choices. ``waits`` are the precedences
by which an author makes sure that there is room; the checker measures whether there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.theory.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Edges, MemoryEvents, Occupancy, Problem, Resource

Wait = tuple[Action, Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """One activation that rank ``source`` parks on rank ``target``; each way takes ``duration``.

    Raises ``ValueError`` for a transfer from a rank to itself or a negative duration (ticks).
    """

    stage: int
    microbatch: int
    source: int
    target: int
    duration: int

    def __post_init__(self) -> None:
        if self.source == self.target or min(self.source, self.target) < 0:
            raise ValueError(
                f"an eviction goes from one rank to another, got {self.source} to {self.target}"
            )
        if self.duration < 0:
            raise ValueError(f"duration of a transfer must be 0 or more, got {self.duration}")

    @property
    def link(self) -> tuple[int, int]:
        """The two ranks of its link, the smaller one first."""
        return min(self.source, self.target), max(self.source, self.target)


def link_resources(evictions: Sequence[Eviction], num_resources: int) -> dict[tuple[int, int], int]:
    """The resource number of each link that is used, in order of the ranks it joins."""
    links = sorted({eviction.link for eviction in evictions})
    return {link: num_resources + number for number, link in enumerate(links)}


def with_evictions(
    problem: Problem, evictions: Sequence[Eviction], waits: Sequence[Wait] = ()
) -> Problem:
    """The problem with an EVICT and a LOAD per eviction, and ``waits`` (before, after) at lag 0.

    Preconditions: store r is the memory of rank r, and the problem has no slices. Raises
    ``ValueError`` where an eviction's forward or backward is no task of its source rank, where one
    is named twice, or where a wait names no task.
    """
    if not evictions:
        return _with_waits(problem, waits)
    columns = np.array([(e.stage, e.microbatch, e.source, e.target) for e in evictions]).T
    stage, microbatch, source, target = columns
    forward, backward = _ends(problem, stage, microbatch, source)
    links = link_resources(evictions, len(problem.resources))
    link = np.array([links[e.link] for e in evictions])
    duration = np.array([e.duration for e in evictions])
    evict = problem.num_tasks + np.arange(len(evictions))
    load = evict + len(evictions)
    units = _left_behind(problem, forward, source)
    extended = replace(
        problem,
        resources=problem.resources + tuple(Resource(name=f"link {a}-{b}") for a, b in links),
        actions=ActionTable.concatenate(
            [problem.actions]
            + [ActionTable.of(int(kind), stage, microbatch) for kind in (Kind.EVICT, Kind.LOAD)]
        ),
        duration=np.concatenate([problem.duration, duration, duration]),
        occupancy=Occupancy(
            task=np.concatenate([problem.occupancy.task, evict, load]),
            resource=np.concatenate([problem.occupancy.resource, link, link]),
        ),
        edges=_joined(problem.edges, [(forward, evict), (evict, load), (load, backward)]),
        events=_joined_events(
            problem.events,
            [
                (evict, False, target, units),
                (evict, True, source, -units),
                (load, False, source, units),
                (load, True, target, -units),
            ],
        ),
    )
    return _with_waits(extended, waits)


def _ends(problem: Problem, stage: Ints, microbatch: Ints, source: Ints) -> tuple[Ints, Ints]:
    """The forward and the backward (B or I) tasks of the evicted activations."""
    forward, full, part = (
        problem.locate(ActionTable.of(int(kind), stage, microbatch))
        for kind in (Kind.F, Kind.B, Kind.I)
    )
    backward = np.where(full == NONE, part, full)
    rank = np.append(problem.rank_of_task, NONE)
    unfit = (rank[forward] != source) | (rank[backward] != source)
    if unfit.any():
        row = int(np.argmax(unfit))
        raise ValueError(
            f"an eviction needs the forward and the backward of stage {stage[row]} microbatch "
            f"{microbatch[row]} on rank {source[row]}"
        )
    return forward, backward


def _left_behind(problem: Problem, forward: Ints, source: Ints) -> Ints:
    """What each forward leaves in the store of its rank, in memory units."""
    events = problem.events
    total = np.zeros((problem.num_tasks, len(problem.stores)), dtype=np.int64)
    np.add.at(total, (events.task, events.store), events.delta)
    return np.asarray(total[forward, source], dtype=np.int64)


def _joined(edges: Edges, pairs: Sequence[tuple[Ints, Ints]]) -> Edges:
    before = np.concatenate([edges.before, *(pair[0] for pair in pairs)])
    after = np.concatenate([edges.after, *(pair[1] for pair in pairs)])
    lag = np.zeros(len(before), dtype=np.int64)
    lag[: len(edges)] = edges.lag
    return Edges(before=before, after=after, lag=lag)


def _joined_events(
    events: MemoryEvents, rows: Sequence[tuple[Ints, bool, Ints, Ints]]
) -> MemoryEvents:
    return MemoryEvents(
        task=np.concatenate([events.task, *(row[0] for row in rows)]),
        at_end=np.concatenate([events.at_end, *(np.full(len(row[0]), row[1]) for row in rows)]),
        store=np.concatenate([events.store, *(row[2] for row in rows)]),
        delta=np.concatenate([events.delta, *(row[3] for row in rows)]),
    )


def _with_waits(problem: Problem, waits: Sequence[Wait]) -> Problem:
    ends = [
        problem.locate(ActionTable.from_actions(wait[side] for wait in waits)) for side in (0, 1)
    ]
    for side in (0, 1):
        if (ends[side] == NONE).any():
            raise ValueError(
                f"a wait names {waits[int(np.argmax(ends[side] == NONE))][side]}, "
                "which is no task of the problem"
            )
    return replace(problem, edges=_joined(problem.edges, [(ends[0], ends[1])]))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictingPipeline(Pipeline):
    """A pipeline whose choices include evictions, and the waits that keep room for them."""

    evictions: tuple[Eviction, ...] = ()
    waits: tuple[Wait, ...] = ()

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory, transfers and their links included."""
        plain = Pipeline.problem(self)  # a slotted dataclass has no zero-argument super()
        return with_evictions(plain, self.evictions, self.waits)
