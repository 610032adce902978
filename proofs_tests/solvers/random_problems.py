"""Small random problems with memory events anywhere: at any start or end, of either sign.

Microbatches are most often identical, since that is where the solver reasons most. Each has the
tasks of one or two stages, W whole or in parts, or a recomputation, or transfers on a link; most
precedences of a training step stand, with lags of any sign, some are missing and some are added.
Stores are used as a pipeline would, or with workspace, or at random.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from bubbleproof.theory.model.problem import Problem, Resource, Store
from proofs_tests.solvers.small import Task, by_hand

MOST_TASKS = 12
STAGES = (
    ("F", "B"), ("F", "B"), ("F", "I", "W"), ("F", "I", "W#0", "W#1"), ("F", "W#0", "W#1"),
    ("F", "R", "B"), ("F", "OFFLOAD", "RELOAD", "B"), ("F", "I", "W#0", "W#1", "W#2"),
)  # fmt: skip
ON_LINKS = ("OFFLOAD", "RELOAD")
Name = tuple[int, int, str]  # stage, slice, kind with its part
Change = tuple[Name, bool, int, int]  # of which task, at its end?, store, delta


def random_problem(rng: Random) -> Problem:
    """One problem of at most a dozen tasks; a third are single queues of GEMMs."""
    if rng.random() < 0.35:
        return _queue(rng)
    names, homes = _tasks(rng)
    m = rng.randint(2, max(2, min(4, MOST_TASKS // len(names))))
    ticks = {name: _ticks(rng) for name in names}
    edges = _edges(rng, names)
    stores, changes = _memory(rng, names, m)
    rows: list[list[Task]] = []
    for j in range(m):
        rows.append([(_text(name, j), ticks[name], homes[name]) for name in names])
    arcs = [(_text(a, j), _text(b, j), lag) for j in range(m) for a, b, lag in edges]
    events = [(_text(n, j), end, store, d) for j in range(m) for n, end, store, d in changes]
    if rng.random() < 0.08:
        _disturb(rng, rows, arcs, events)
    tasks = [task for row in rows for task in row]
    rng.shuffle(tasks)
    resources = [Resource(name=f"rank {r}", rank=r) for r in range(2)] + [Resource(name="link")]
    return by_hand(tasks, arcs, resources=resources, stores=stores, events=events)


def _queue(rng: Random) -> Problem:
    """One stage on one rank, its tasks one after the other with long lags, little room."""
    kinds = rng.choice((("F", "I", "W#0", "W#1"), ("F", "W#0", "W#1"), ("F", "R", "B")))
    names = [(0, 0, kind) for kind in kinds]
    m = MOST_TASKS // len(names)
    lags = [rng.choice((0, 0, 1, 2, 3, 4)) for _ in names[1:]]
    changes = rng.choice((_gemms, _gemms, _workspace, _walk))(rng, names, 0)
    peak = level = 0
    for *_, delta in changes:
        level += delta
        peak = max(peak, level)
    store = Store(name="store 0", capacity=max(0, peak + rng.choice((-1, 0, 1, 2, 3))))
    ticks = [rng.choice((0, 0, 1, 1, 2)) for _ in names]
    return by_hand(
        [(_text(name, j), d, (0,)) for j in range(m) for name, d in zip(names, ticks, strict=True)],
        [
            (_text(one, j), _text(other, j), lag)
            for j in range(m)
            for (one, other), lag in zip(pairwise(names), lags, strict=True)
        ],
        stores=[store],
        events=[(_text(n, j), end, at, d) for j in range(m) for n, end, at, d in changes],
    )


def _text(name: Name, microbatch: int) -> str:
    stage, piece, kind = name
    letter, _, part = kind.partition("#")
    return f"{stage}{letter}{microbatch}.{piece}" + (f"#{part}" if part else "")


def _ticks(rng: Random) -> int:
    return rng.choice((0, 0, 1, 1, 2, 2, 3))


def _lag(rng: Random) -> int:
    return rng.choice((0, 0, 0, 0, 0, 1, 2, 3, -1, -3))


def _tasks(rng: Random) -> tuple[list[Name], dict[Name, tuple[int, ...]]]:
    """The tasks of a microbatch in an order of its precedences, and the resources of each."""
    shape = rng.choice(((1, 1), (1, 1), (1, 1), (2, 1), (2, 1), (1, 2)))
    names: list[Name] = []
    for stage in range(shape[0]):
        kinds = rng.choice(STAGES)
        for piece in range(shape[1]):
            if len(names) + len(kinds) <= MOST_TASKS // 2:
                names += [(stage, piece, kind) for kind in kinds]
    ranks = rng.choice(((0, 0), (0, 1), (0, 1)))
    homes: dict[Name, tuple[int, ...]] = {}
    for name in names:
        on_link = name[2] in ON_LINKS and rng.random() < 0.8
        homes[name] = (2,) if on_link else (ranks[name[0]],)
        if rng.random() < 0.03:
            homes[name] = (0, 2)
    order = {"F": 0, "OFFLOAD": 1, "R": 2, "RELOAD": 2}
    names.sort(key=lambda n: (order.get(n[2], 3), n[0] if n[2] == "F" else -n[0], n[1]))
    return names, homes


def _edges(rng: Random, names: list[Name]) -> list[tuple[Name, Name, int]]:
    """Mostly those of a training step, all from earlier to later names."""
    present = rng.choice((1.0, 1.0, 1.0, 0.6))
    edges = []
    for at, after in enumerate(names):
        for before in names[:at]:
            same = before[:2] == after[:2]
            crossing = before[2] == after[2] and before[:2] != after[:2]
            if rng.random() < (present if same or crossing else 0.08 * (present < 1)):
                edges.append((before, after, _lag(rng) if rng.random() < 0.4 else 0))
    return edges


def _memory(rng: Random, names: list[Name], m: int) -> tuple[list[Store], list[Change]]:
    changes: list[Change] = []
    stores = []
    for store in range(rng.choice((1, 1, 1, 2))):
        style = rng.choice((_held, _workspace, _gemms, _gemms, _gemms, _walk, _walk, _anything))
        found: list[Change] = []
        for stage_slice in dict.fromkeys(name[:2] for name in names):
            if rng.random() < 0.85:
                found += style(rng, [n for n in names if n[:2] == stage_slice], store)
        reach = max(1, sum(max(0, delta) for *_, delta in found))
        base = rng.choice((0, 0, 0, 1, 2))
        least = max([0, *(delta for *_, delta in found)])
        tight = rng.choice((reach, reach * 2, reach * m * 2 // 3))
        room = rng.randint(least, max(least, tight))
        if rng.random() < 0.1:
            room = rng.randint(0, least)
        capacity = None if rng.random() < 0.1 else base + room
        stores.append(Store(name=f"store {store}", base=base, capacity=capacity))
        changes += found
    return stores, changes


def _held(rng: Random, names: list[Name], store: int) -> list[Change]:
    """Acquired at the first start, released in parts at later ends; sometimes nothing."""
    left = rng.choice((0, 1, 2, 3, 4))
    changes = [(names[0], False, store, left)]
    for name in names[1:-1]:
        if left > 1 and rng.random() < 0.5:
            part = rng.randint(1, left - 1)
            left -= part
            changes.append((name, True, store, -part))
    return [*changes, (names[-1], True, store, -left)]


def _workspace(rng: Random, names: list[Name], store: int) -> list[Change]:
    """The same, and tasks that acquire something for themselves and release some of the rest."""
    changes = _held(rng, names, store)
    for name in names:
        if rng.random() < 0.5:
            amount = rng.randint(0, 2)
            changes += [(name, False, store, amount), (name, True, store, -amount)]
    return changes


def _gemms(rng: Random, names: list[Name], store: int) -> list[Change]:
    """Each task after the first acquires workspace and releases it with a share of the rest."""
    parts = names[2:] or names[1:]
    shares = [rng.randint(0, 2) for _ in parts]
    changes = [(names[0], False, store, max(0, sum(shares) - rng.randint(0, 1)))]
    left = changes[0][3]
    for name, share in zip(parts, shares, strict=True):
        work = rng.randint(0, 2)
        given = left if name == parts[-1] else min(share, left)
        left -= given
        changes += [(name, False, store, work), (name, True, store, -work - given)]
    return changes


def _walk(rng: Random, names: list[Name], store: int) -> list[Change]:
    """Any changes at moments in the order of the names; what is left goes at the last."""
    level, changes = 0, list[Change]()
    for name in names:
        for at_end in (False, True):
            if rng.random() < 0.5:
                delta = rng.randint(-level, 3)
                level += delta
                changes.append((name, at_end, store, delta))
    return [*changes, (names[-1], True, store, -level)] if level else changes


def _anything(rng: Random, names: list[Name], store: int) -> list[Change]:
    return [
        (name, at_end, store, rng.choice((1, 2, 3, -1, -2)))
        for name in names
        for at_end in (False, True)
        if rng.random() < 0.4
    ]


def _disturb(
    rng: Random,
    rows: list[list[Task]],
    arcs: list[tuple[str, str, int]],
    events: list[tuple[str, bool, int, int]],
) -> None:
    """One microbatch unlike the others."""
    which = rng.randrange(4)
    if which == 0:
        text, ticks, homes = rows[-1][0]
        rows[-1][0] = text, ticks + 1, homes
    elif which == 1 and arcs:
        before, after, lag = arcs[-1]
        arcs[-1] = before, after, lag + 2
    elif which == 2 and events:
        text, at_end, store, delta = events[-1]
        events[-1] = text, at_end, store, delta - 1
    elif which == 3:
        arcs.append((rows[-1][-1][0], rows[0][0][0], 0))
