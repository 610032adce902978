"""Evictions: saved activations that wait on a peer rank until their backward needs them.

An eviction of (stage, microbatch) adds two tasks to a problem, EVICT and LOAD. Both occupy only the
link between the evictor (``source``) and the acceptor (``target``), which carries one transfer at a
time: in either direction where it is of half duplex (BPipe section 3.5; ``links``). With F and B
the forward and backward (B or I) of that stage and microbatch, and a the units that F leaves in the
store of the source:

- precedences: EVICT after F, LOAD after EVICT, B after LOAD;
- memory: EVICT adds a to the target at its start and takes a from the source at its end; LOAD
  adds a to the source at its start and takes a from the target at its end. So a transfer in flight
  counts on both ends (docs/guide/design.md §2).

A *wait* is a precedence by which an author makes sure that there is room; the checker measures
whether there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import backwards_of, extended, more_edges, numbered
from bubbleproof.theory.pipelines.links import HALF_DUPLEX, Links
from bubbleproof.theory.pipelines.value_types import Expectation

ActionPair = tuple[Action, Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """An activation that waits on rank ``target``; each way takes ``duration`` ticks.

    It is one of rank ``source``. Raises ``ValueError`` for a transfer from a rank to itself or a
    negative duration.
    """

    stage: int
    microbatch: int
    source: int
    target: int
    duration: int
    slice: int = 0

    def __post_init__(self) -> None:
        if self.source == self.target or min(self.source, self.target) < 0:
            raise ValueError(
                f"an eviction goes from one rank to another, got {self.source} to {self.target}"
            )
        if self.duration < 0:
            raise ValueError(f"duration of a transfer must be 0 or more, got {self.duration}")


def with_evictions(
    problem: Problem, evictions: Sequence[Eviction], links: Links = HALF_DUPLEX
) -> Problem:
    """The problem with an EVICT and a LOAD per eviction, on the links between their ranks.

    Precondition: store r is the memory of rank r. Raises ``ValueError`` where an eviction's forward
    or backward is no task of its source rank, or its target is no rank.
    """
    columns = np.array(
        [(e.stage, e.microbatch, e.slice, e.source, e.target, e.duration) for e in evictions],
        dtype=np.int64,
    ).reshape(len(evictions), 6)
    stage, microbatch, slice_, source, target, duration = columns.T
    if (most := int(target.max(initial=0))) >= problem.num_ranks:
        raise ValueError(f"an eviction goes to a rank of 0..{problem.num_ranks - 1}, got {most}")
    forward = _forwards(problem, columns)
    backward = backwards_of(problem, forward)
    ways = [(e.source, e.target) for e in evictions] + [(e.target, e.source) for e in evictions]
    by_link = sorted(set(ways), key=lambda way: (min(way), max(way), way))
    _, new = numbered(problem.resources, [links.name(*way) for way in by_link])
    resources = (*problem.resources, *(Resource(name=name) for name in new))
    numbers, _ = numbered(resources, [links.name(*way) for way in ways])
    evict = problem.num_tasks + np.arange(len(evictions))
    load = evict + len(evictions)
    units = left_behind(problem, forward, source)
    return extended(
        problem,
        actions=ActionTable.concatenate(
            ActionTable.of(int(kind), stage, microbatch, slice_) for kind in (Kind.EVICT, Kind.LOAD)
        ),
        duration=np.concatenate([duration, duration]),
        homes=[(np.concatenate([evict, load]), numbers)],
        waits=[(forward, evict), (evict, load), (load, backward)],
        changes=[
            (evict, False, target, units),
            (evict, True, source, -units),
            (load, False, source, units),
            (load, True, target, -units),
        ],
        resources=resources[len(problem.resources) :],
    )


def _forwards(problem: Problem, columns: Ints) -> Ints:
    """The forward tasks of the evicted activations."""
    stage, microbatch, slice_, source = columns.T[:4]
    forward = problem.locate(ActionTable.of(int(Kind.F), stage, microbatch, slice_))
    unfit = np.append(problem.rank_of_task, NONE)[forward] != source  # ``NONE`` is the last place
    if unfit.any():
        row = int(np.argmax(unfit))
        raise ValueError(
            f"an eviction needs the forward and the backward of stage {stage[row]} microbatch "
            f"{microbatch[row]} on rank {source[row]}"
        )
    return forward


def left_behind(problem: Problem, forward: Ints, source: Ints) -> Ints:
    """What each forward leaves in the store of its rank, in memory units.

    Parameters
    ----------
    forward
        Indices of forward tasks.
    source
        The rank of each of them, whose memory is the store of that number.
    """
    events = problem.events
    total = np.zeros((problem.num_tasks, len(problem.stores)), dtype=np.int64)
    np.add.at(total, (events.task, events.store), events.delta)
    return np.asarray(total[forward, source], dtype=np.int64)


def with_waits(problem: Problem, waits: Sequence[ActionPair]) -> Problem:
    """The problem with a precedence from the first to the second action of each wait, at lag 0.

    Precondition: there is a wait. Raises ``ValueError`` where one names no task.
    """
    ends = [problem.locate(ActionTable.from_actions(side)) for side in zip(*waits, strict=True)]
    for side, tasks in enumerate(ends):
        if (tasks == NONE).any():
            lost = waits[int(np.argmax(tasks == NONE))][side]
            raise ValueError(f"a wait names {lost}, which is no task of the problem")
    return replace(problem, edges=more_edges(problem.edges, [(ends[0], ends[1])]))


EvictionChoice = Annotated[
    tuple[Eviction, ...],
    Expectation("a tuple of Eviction"),
    ChoiceKind(
        turn=1,
        change=lambda problem, moves, setting: with_evictions(problem, moves, setting.links),
        adds_tasks=True,
    ),
]
WaitChoice = Annotated[
    tuple[ActionPair, ...],
    Expectation("a tuple of (Action, Action)"),
    ChoiceKind(turn=6, change=lambda problem, waits, _: with_waits(problem, waits)),
]
