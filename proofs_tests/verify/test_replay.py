"""What follows in a replay: against plain longest paths, plain unit propagation, and by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from random import Random

import numpy as np
import pytest

from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import Edges, Occupancy, Problem, Resource, Store
from bubbleproof.verify.certificates.chains import Chain, is_too_full
from bubbleproof.verify.certificates.drup_replay import DrupReplay, Literal

ENDLESS = 1 << 50  # a limit that no circle of orders comes near within MOST_RAISES


def made(
    ticks: Sequence[int],
    ranks: Sequence[int],
    edges: Sequence[tuple[int, int, int]] = (),
    store: tuple[int, int] = (0, 1),
) -> Problem:
    """Task i is ``iF0``, on ``ranks[i]``; the store of rank 0 has a base load and a capacity."""
    resources = tuple(Resource(name=f"rank {r}", rank=r) for r in range(max(ranks) + 1))
    stores = [Store(name="memory of rank 0", base=store[0], capacity=store[1])]
    stores += [Store(name=f"memory of {each.name}", base=0) for each in resources[1:]]
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    return Problem(
        resources=resources,
        stores=tuple(stores),
        actions=ActionTable.from_actions([Action.parse(f"{i}F0") for i in range(len(ticks))]),
        duration=np.array(ticks, dtype=np.int64),
        occupancy=Occupancy(task=np.arange(len(ticks)), resource=np.array(ranks, dtype=np.int64)),
        edges=Edges(before=columns[0], after=columns[1], lag=columns[2]),
    )


def test_windows_are_the_longest_paths() -> None:
    """Each task on a rank of its own: the earliest start is the longest path to it, the latest
    leaves room for the longest path from it."""
    for seed in range(40):
        random = Random(seed)
        n = random.randint(2, 6)
        ticks = [random.randint(0, 4) for _ in range(n)]
        name = random.sample(range(n), n)  # so that the order of numbers says nothing
        edges = [
            (name[a], name[b], random.randint(0, 3))
            for b in range(n)
            for a in range(b)
            if random.random() < 0.5
        ]
        early, late = [0] * n, [ticks[t] for t in range(n)]
        for _ in range(n):
            for a, b, lag in edges:
                early[b] = max(early[b], early[a] + ticks[a] + lag)
                late[a] = max(late[a], ticks[a] + lag + late[b])
        limit = max(early[t] + late[t] for t in range(n)) + random.randint(0, 2)
        replay = DrupReplay(made(ticks, range(n), edges), limit, "makespan", 0)
        for task, tick in product(range(n), range(-1, limit + 2)):
            assert replay.follows([(2 * task, tick)]) == (tick <= early[task]), (seed, task, tick)
            is_latest = tick >= limit - late[task]
            assert replay.follows([(2 * task + 1, -tick)]) == is_latest, (seed, task, tick)
        longest = max(early[t] + late[t] for t in range(n))
        assert DrupReplay(made(ticks, range(n), edges), longest - 1, "makespan", 0).follows([])


def test_an_order_that_the_windows_decide_is_a_path() -> None:
    """a is in [0, 2], for 5 ticks on rank 2 come after its 3; b in [4, 7], after 4 on rank 1."""
    a, b, x, y = range(4)
    problem = made([3, 3, 4, 5], [0, 0, 1, 2], [(x, b, 0), (a, y, 0)])
    replay = DrupReplay(problem, 10, "makespan", 0)
    assert replay.follows([replay.orders[a, b]])
    for start in range(3):
        # if a starts after start, then b at start + 1 + 3 or later
        assert replay.follows([(2 * a + 1, -start), (2 * b, max(4, start + 4))])
        assert not replay.follows([(2 * a + 1, -start), (2 * b, start + 5)]) or start == 2
    assert replay.follows([(2 * b, 6), (2 * a + 1, -2)])  # b by 5, so a by 2
    assert replay.follows([(2 * b, 5), (2 * a + 1, -1)])  # b by 4, so a by 1
    assert not replay.follows([(2 * b, 5), (2 * a + 1, 0)])


def refuted(clauses: list[list[int]], supposed: list[int]) -> bool:
    """Unit propagation from scratch: variable i is the literal i, its negation -i."""
    true = set(supposed)
    while True:
        for clause in clauses:
            open_ = [x for x in clause if -x not in true]
            if not open_:
                return True
            if len(open_) == 1 and open_[0] not in true:
                true.add(open_[0])
                break
        else:
            return any(-x in true for x in true)


def test_clauses_are_propagated_as_from_scratch() -> None:
    """Two tasks on each rank: variable i says that the first of rank i - 1 ends first."""
    count, found = 5, {True: 0, False: 0}
    problem = made([1] * (2 * count), [i // 2 for i in range(2 * count)])
    for seed in range(150):
        random = Random(seed)
        replay = DrupReplay(problem, 9, "makespan", 0)

        def literal(x: int, replay: DrupReplay = replay) -> Literal:
            a, b = 2 * abs(x) - 2, 2 * abs(x) - 1
            return replay.orders[(a, b) if x > 0 else (b, a)]

        clauses: list[list[int]] = []
        for _ in range(random.randint(2, 9)):
            variables = random.sample(range(1, count + 1), random.choice([1, 2, 2, 3, 3, 4]))
            clauses.append([random.choice([x, -x]) for x in variables])
            replay.learn([literal(x) for x in clauses[-1]])
            for _ in range(4):
                asked = random.sample(range(1, count + 1), random.randint(0, 3))
                signed = [random.choice([x, -x]) for x in asked]
                expected = refuted(clauses, [-x for x in signed])
                assert replay.follows([literal(x) for x in signed]) == expected, (seed, clauses)
                found[expected] += 1
    assert min(found.values()) > 400


def test_what_is_learnt_of_a_supposition_goes_with_it() -> None:
    replay = DrupReplay(made([1] * 6, [0, 0, 1, 1, 2, 2]), 9, "makespan", 0)
    one, two, three = (replay.orders[2 * i, 2 * i + 1] for i in range(3))
    assert not replay.reject()  # nothing is supposed
    replay.suppose(one)
    assert replay.follows([one])
    replay.learn([two, three])  # two open literals: not remembered
    replay.learn([two])
    assert replay.follows([two])
    assert not replay.reject()  # not refuted
    replay.learn([(two[0] ^ 1, 1 - two[1])])
    assert replay.follows([])
    assert replay.reject()
    assert not replay.follows([])
    assert replay.follows([(one[0] ^ 1, 1 - one[1])])
    assert not replay.follows([two])
    assert not replay.follows([two, three])


@pytest.mark.parametrize("places", list(permutations(range(4))))
def test_orders_of_three_are_seen_however_long_the_limit(places: tuple[int, ...]) -> None:
    first, second, a, b = places  # a path leads from the first over the second to a
    problem = made([1, 2, 3, 4], [0] * 4, [(first, second, 0), (second, a, 0)])
    replay = DrupReplay(problem, ENDLESS, "makespan", 0)
    for earlier in (first, second):
        assert replay.follows([replay.orders[b, a], replay.orders[earlier, b]])
        assert not replay.follows([replay.orders[a, b], replay.orders[b, earlier]])
    assert replay.follows([replay.orders[b, second], replay.orders[first, b]])
    assert not replay.follows([replay.orders[b, first], replay.orders[second, b]])
    assert not replay.follows([replay.orders[b, a]])


def with_changes(
    problem: Problem, limit: int, changes: Sequence[tuple[int, bool, int]]
) -> DrupReplay:
    """A replay in which each change (task, at its end?, delta) is a chain of its own, by hand."""
    replay = DrupReplay(problem, limit, "makespan", 0)
    replay.chains = {0: [[((task, at_end), delta)] for task, at_end, delta in changes]}
    return replay


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("places", list(permutations(range(3))))
def test_what_a_path_or_an_order_puts_before_is_over(places: tuple[int, ...], at_end: bool) -> None:
    x, y, other = places  # x and y acquire a unit each and keep it
    changes = [(x, at_end, 1), (y, False, 1)]
    for capacity in (1, 2):
        for edges in ([(x, y, 0)], [(x, other, 0), (other, y, 0)]):
            problem = made([1, 2, 3], [0] * 3, edges, (0, capacity))
            assert with_changes(problem, ENDLESS, changes).follows([], full=y) == (capacity == 1)
        free = with_changes(made([1, 2, 3], [0] * 3, store=(0, capacity)), ENDLESS, changes)
        assert not free.follows([], full=y)
        assert free.follows([free.orders[y, x]], full=y) == (capacity == 1)
        assert not free.follows([free.orders[x, y]], full=y)
        # x before the other, and that before y: only a path tells what lies before what is before
        problem = made([1, 2, 3], [0] * 3, [(x, other, 0)], (0, capacity))
        behind = with_changes(problem, ENDLESS, changes)
        assert behind.follows([behind.orders[y, other]], full=y) == (capacity == 1)


@pytest.mark.parametrize("places", list(permutations(range(3))))
def test_what_comes_later_is_not_over(places: tuple[int, ...]) -> None:
    # x would give the unit back that y needs; whether it may have ended is all that counts.
    x, y, other = places
    store, changes = (1, 1), [(x, True, -1), (y, False, 1)]
    for edges in ([(y, x, 0)], [(y, other, 0), (other, x, 0)]):
        later = with_changes(made([1, 2, 3], [0] * 3, edges, store), ENDLESS, changes)
        assert later.follows([], full=y)
    free = with_changes(made([1, 2, 3], [0] * 3, store=store), ENDLESS, changes)
    assert not free.follows([], full=y)
    assert free.follows([free.orders[x, y]], full=y)  # y first
    assert not free.follows([free.orders[y, x]], full=y)
    problem = made([1, 2, 3], [0] * 3, [(other, x, 0)], store)
    behind = with_changes(problem, ENDLESS, changes)
    assert behind.follows([behind.orders[other, y]], full=y)  # y first, then the other, then x


@pytest.mark.parametrize("ends", [2, 3, 4])
def test_what_the_windows_put_before_is_over(ends: int) -> None:
    """y starts at 3 on rank 0, where 3 ticks of another task come first and 7 are its own; x ends
    at ``ends`` on rank 1, for what comes after it takes the rest of 10."""
    ticks, ranks = [3, 7, ends, 10 - ends], [0, 0, 1, 1]
    edges, y, x = [(0, 1, 0), (2, 3, 0)], 1, 2
    for at_end in (False, True):
        changes = [(x, at_end, 1), (y, False, 1)]
        replay = with_changes(made(ticks, ranks, edges), 10, changes)
        assert replay.follows([], full=y) == (ends <= 3 or not at_end)
    # What is given back at 3 is free at 3, what is given back at 4 is not.
    replay = with_changes(made(ticks, ranks, edges, (1, 1)), 10, [(x, True, -1), (y, False, 1)])
    assert replay.follows([], full=y) == (ends > 3)


def test_what_starts_with_it_counts() -> None:
    # Both start at 0: they take all of the 5 ticks of their ranks. With 6 they need not.
    changes = [(0, False, 1), (1, False, 1)]
    assert with_changes(made([5, 5], [0, 1]), 5, changes).follows([], full=0)
    assert not with_changes(made([5, 5], [0, 1]), 6, changes).follows([], full=0)
    # A unit given back by the start of the other is there; one tick later it is not.
    changes = [(0, False, 1), (1, False, -1)]
    assert not with_changes(made([5, 5], [0, 1], store=(1, 1)), 5, changes).follows([], full=0)
    late = made([5, 1, 4], [0, 1, 1], [(1, 2, 0)], (1, 1))  # task 2 starts at 1
    assert with_changes(late, 5, [(0, False, 1), (2, False, -1)]).follows([], full=0)


OVER, PERHAPS, NOT_YET = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("states", "least"),
    [
        ([NOT_YET, NOT_YET, NOT_YET], 0),
        ([OVER, NOT_YET, NOT_YET], 3),
        ([OVER, PERHAPS, NOT_YET], 1),  # 3 or 1
        ([OVER, PERHAPS, PERHAPS], 1),  # 3, 1 or 4
        ([PERHAPS, PERHAPS, OVER], 4),  # the last is over, so all are
        ([OVER, NOT_YET, PERHAPS], 3),  # the last cannot be without the one before
        ([NOT_YET, OVER, PERHAPS], 99),  # cannot be: no schedule
    ],
)
def test_the_least_that_a_chain_holds(states: list[tuple[bool, bool]], least: int) -> None:
    chain: Chain = [((0, False), 3), ((0, True), 1), ((1, False), 4)]
    told = dict(zip([(0, False), (0, True), (1, False)], states, strict=True))
    for base, capacity in product([0, 2], range(9)):
        problem = made([1, 1], [0, 0], store=(base, capacity))
        assert is_too_full(problem, {0: [chain]}, told.__getitem__) == (base + least > capacity)
        twice = is_too_full(problem, {0: [chain, chain]}, told.__getitem__)
        assert twice == (base + 2 * least > capacity)
    assert not is_too_full(made([1, 1], [0, 1]), {1: [chain]}, told.__getitem__)  # no capacity
