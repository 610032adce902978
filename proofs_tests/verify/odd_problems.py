"""Random problems of microbatches that are alike, nearly alike or not, for statements about those.

A problem has a few classes of tasks, tasks of no microbatch, precedences and changes of loads
within and across microbatches, each drawn once and put into all or most of them. Few values are
used, so that what differs often looks alike.
"""

from __future__ import annotations

from random import Random

from bubbleproof.theory.model.problem import Problem, Resource, Store
from proofs_tests.solvers.small import Task, by_hand

RESOURCES = (*(Resource(name=f"rank {r}", rank=r) for r in range(2)), Resource(name="link"))
OUTSIDE = ("0STEP", "1STEP")
ONE_STAGE, TWO_STAGES = ("0F", "0B", "0I", "0W"), ("0F", "0B", "0W", "1F", "1B")
DELTAS = ((2, -2), (3, -1, -2), (1, 1, -2), (2, -1, 1, -2), (1, -2), (2, -1), (2, 0, -2), (0, 0))


def odd_problem(rng: Random) -> Problem:
    """At most 4 microbatches of at most 4 tasks, and 2 tasks of none.

    There is no cycle of precedences but where one microbatch turns one round.
    """
    odd = rng.choice((0, 0, 0.05, 0.3))  # how often a microbatch differs
    names = rng.sample(rng.choice((ONE_STAGE, TWO_STAGES)), rng.randint(2, 4))
    m, outside = rng.choice((1, 2, 3, 3, 4)), OUTSIDE[: rng.randint(0, 2)]
    home = {name: (rng.randint(0, 2),) for name in names}
    ticks = {name: rng.choice((0, 0, 1, 1, 2)) for name in names}
    rows: list[Task] = [
        (f"{name}{j}", ticks[name] + (rng.random() < odd / 4), home[name])
        for name in names
        for j in range(m)
    ]
    rows += [(name, rng.choice((0, 1, 1)), (0,)) for name in outside]
    rng.shuffle(rows)
    if rng.random() < 0.5:  # what is outside has the least numbers
        rows.sort(key=lambda row: row[0] not in outside)
    return by_hand(
        rows,
        _edges(rng, odd, names, outside, m),
        resources=RESOURCES,
        stores=[
            Store(name=f"store {s}", base=3, capacity=rng.choice((None, 4, 5, 6, 6, 7)))
            for s in range(2)
        ],
        events=_changes(rng, odd, names, m),
    )


def _edges(
    rng: Random, odd: float, names: list[str], outside: tuple[str, ...], m: int
) -> list[tuple[str, str, int]]:
    drawn = [sorted(rng.sample(range(len(names)), 2)) for _ in range(rng.randint(1, 3))]
    in_a_row = [[n, n + 1] for n in range(len(names) - 1)] if rng.random() < 0.6 else []
    found = []
    for before, after in drawn + in_a_row:
        lag = rng.choice((0, 0, 0, 1, 2, -1, -3))
        for j in range(m):
            pair = f"{names[before]}{j}", f"{names[after]}{j}"
            if rng.random() < odd and outside:
                joined = rng.choice(pair), rng.choice(outside)
                pair = rng.choice((joined, joined[::-1]))
            elif rng.random() < odd / 2:
                pair = pair[::-1]
            elif rng.random() < odd:
                pair = f"{names[before]}0", f"{names[after]}{m - 1}"
            found.append((*pair, lag))
    return found


def _changes(rng: Random, odd: float, names: list[str], m: int) -> list[tuple[str, bool, int, int]]:
    """Mostly taken at one start and given back at later ends."""
    found = []
    for store in rng.sample(range(2), rng.randint(1, 2)):
        for stage in "01":
            own, deltas = [name for name in names if name[0] == stage], rng.choice(DELTAS)
            if not own or rng.random() < 0.2:
                continue
            at = sorted(rng.choices(range(2 * len(own)), k=len(deltas)))
            at[0], at[-1] = rng.choice(((0, 2 * len(own) - 1), (at[0], at[-1])))
            for j in range(m):
                for moment, delta in zip(at, deltas, strict=True):
                    more = rng.random() < odd / 4
                    found.append((f"{own[moment // 2]}{j}", bool(moment % 2), store, delta + more))
    return found
