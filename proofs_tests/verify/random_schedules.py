"""Small random problems with a valid schedule each: every kind of task and of memory event in them.

Nothing of a pipeline is in them: tasks of all kinds wait for each other at random, on ranks, on a
link and on an engine, some on two of these, and change the load of any store at their start and at
their end. Capacities are the schedule's own peaks, a unit more, or none.
"""

from __future__ import annotations

from random import Random

import numpy as np

from bubbleproof.theory.model.actions import NONE, STAGE_KINDS, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from proofs_tests.verify.tables import Specimen, Table

EVENT_KINDS = tuple(kind for kind in Kind if kind <= Kind.REDUCE_GRAD)  # F to REDUCE_GRAD
RANKS, RESOURCES, STORES = 2, 4, 3
LAGS = (0, 0, 0, 1, 2, -1)

Event = tuple[int, bool, int, int]  # task, at its end?, store, delta


def random_specimen(random: Random) -> Specimen:
    """A problem and a valid schedule of it; tasks are numbered in an order that they may run in."""
    actions = _actions(random)
    tasks = range(len(actions))
    ticks = [random.choice((0, 1, 1, 2, 2, 3, 4)) for _ in tasks]
    homes = [_homes(random) for _ in tasks]
    edges = [
        (before, after, random.choice(LAGS))
        for after in tasks[1:]
        for before in random.sample(range(after), min(after, random.choice((0, 1, 1, 2))))
    ] or [(0, 1, 0)]
    starts = _starts(random, ticks, homes, edges)
    events = [event for task in tasks for event in _events(random, task)]
    problem = Problem(
        resources=(
            *(Resource(name=f"rank {rank}", rank=rank) for rank in range(RANKS)),
            Resource(name="link"),
            Resource(name="engine"),
        ),
        actions=ActionTable.from_actions(actions),
        duration=np.array(ticks),
        occupancy=Occupancy(
            task=np.repeat(tasks, [len(home) for home in homes]),
            resource=np.concatenate(homes),
        ),
        edges=Edges(before=_column(edges, 0), after=_column(edges, 1), lag=_column(edges, 2)),
        stores=tuple(_store(random, number, events, starts, ticks) for number in range(STORES)),
        events=memory_events(events),
    )
    rows: Table = [
        [(actions[task], starts[task]) for task in tasks if resource in homes[task]]
        for resource in range(RESOURCES)
    ]
    return Specimen(problem=problem, rows=rows, claims={})


def memory_events(events: list[Event]) -> MemoryEvents:
    """The events as columns."""
    return MemoryEvents(
        task=_column(events, 0),
        at_end=_column(events, 1).astype(np.bool_),
        store=_column(events, 2),
        delta=_column(events, 3),
    )


def _column(rows: list[tuple[int, int, int]] | list[Event], at: int) -> Ints:
    return np.array([row[at] for row in rows], dtype=np.int64)


def _actions(random: Random) -> list[Action]:
    """One action of each kind that changes memory, a few more, and perhaps an overlapped pair."""
    kinds = [*EVENT_KINDS, *random.choices(EVENT_KINDS, k=3), Kind.STEP]
    found = {_action(random, kind) for kind in kinds}
    if random.random() < 0.3:
        pair = _action(random, Kind.B)
        forward = {"stage": 0, "kind": Kind.OVERLAP_F_B, "microbatch": 1, "slice": pair.slice}
        found.add(Action(**forward, partner=pair))  # type: ignore[arg-type]  # ints by name
    return random.sample(sorted(found, key=str), len(found))


def _action(random: Random, kind: Kind) -> Action:
    microbatch = NONE if kind in STAGE_KINDS else random.randrange(3)
    part = random.choice((NONE, NONE, 0, 1)) if kind is Kind.W else NONE
    stage, slice_ = random.randrange(3), random.choice((0, 0, 0, 1))
    return Action(stage=stage, kind=kind, microbatch=microbatch, slice=slice_, part=part)


def _homes(random: Random) -> list[int]:
    """A rank mostly, sometimes a link or an engine beside it or alone."""
    if random.random() < 0.2:
        return [random.randrange(RANKS, RESOURCES)]
    home = [random.randrange(RANKS)]
    return home + [random.randrange(RANKS, RESOURCES)] * (random.random() < 0.2)


def _starts(
    random: Random, ticks: list[int], homes: list[list[int]], edges: list[tuple[int, int, int]]
) -> list[int]:
    """One task after the other as early as it may start, and now and then a little later."""
    free, starts = [0] * RESOURCES, list[int]()
    for task, home in enumerate(homes):
        ready = [starts[b] + ticks[b] + lag for b, after, lag in edges if after == task]
        start = max(0, *(free[resource] for resource in home), *ready)
        starts.append(start + random.choice((0, 0, 0, 0, 1, 2)))
        for resource in home:
            free[resource] = starts[task] + ticks[task]
    return starts


def _events(random: Random, task: int) -> list[Event]:
    """Some of what a task may do: acquire or release, at its start or at its end."""
    ways = [(at_end, sign) for at_end in (False, True) for sign in (1, -1)]
    return [
        (task, at_end, random.randrange(STORES), sign * random.randint(1, 3))
        for at_end, sign in random.sample(ways, random.choice((2, 3, 4)))
    ]


def _store(
    random: Random, number: int, events: list[Event], starts: list[int], ticks: list[int]
) -> Store:
    """A store that the schedule never leaves, mostly one that it fills."""
    change: dict[int, int] = {}
    for task, at_end, store, delta in events:
        if store == number:
            when = starts[task] + ticks[task] * at_end
            change[when] = change.get(when, 0) + delta
    loads = np.cumsum([0, *(change[when] for when in sorted(change))])
    base = max(0, -int(loads.min())) + random.choice((0, 0, 1))
    capacity = random.choice((None, base + int(loads.max()) + random.choice((0, 0, 1))))
    return Store(name=f"store {number}", base=base, capacity=capacity)
