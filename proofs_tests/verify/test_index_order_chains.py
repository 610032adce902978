"""What index order and chains say, stated a second time by names and by trying every order.

Every certificate rests on them. The second statement follows the hypotheses in the two modules'
texts, with sets and permutations where they have columns and sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, permutations
from random import Random

import pytest

from bubbleproof.theory.model.problem import Edges, Problem, Store
from bubbleproof.verify.certificates.chains import Chain, LifecycleMoment
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from proofs_tests.sized import sized
from proofs_tests.solvers.small import Task, by_hand
from proofs_tests.verify.odd_problems import RESOURCES, odd_problem

Owner = tuple[int, int, int, int]  # store, stage, slice, microbatch
Name = tuple[int, int, int, int]  # kind, stage, slice, part
Life = tuple[int, int, int, int, int]  # store, first, last, acquired, held
NO_PATH = -1000
MOST_MOMENTS = 5  # whose orders are tried


def names(problem: Problem) -> list[Name]:
    """What each task is but for its microbatch."""
    actions = problem.actions
    columns = (actions.kind, actions.stage, actions.slice, actions.part)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def edges_of(edges: Edges) -> list[tuple[int, int, int]]:
    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    return list(zip(*columns, strict=True))


def changes_of(problem: Problem) -> list[tuple[int, bool, int, int]]:
    """(task, at its end, store, units)."""
    events = problem.events
    columns = events.task, events.at_end, events.store, events.delta
    return list(zip(*(column.tolist() for column in columns), strict=True))


def said(problem: Problem) -> dict[int, Counter[tuple[object, ...]]]:
    """All that is said of each microbatch's tasks; every other task is named by its number."""
    sample, name, homes = problem.actions.microbatch.tolist(), names(problem), problem.occupancy
    facts: dict[int, Counter[tuple[object, ...]]] = {j: Counter() for j in sorted({*sample})}

    def other(task: int, microbatch: int) -> object:
        return name[task] if sample[task] == microbatch else task

    for task, ticks in enumerate(problem.duration.tolist()):
        facts[sample[task]]["takes", name[task], ticks] += 1
    for task, resource in zip(homes.task.tolist(), homes.resource.tolist(), strict=True):
        facts[sample[task]]["runs on", name[task], resource] += 1
    for task, *change in changes_of(problem):
        facts[sample[task]]["changes", name[task], *change] += 1
    for before, after, lag in edges_of(problem.edges):
        for word, task, its in (("before", before, after), ("after", after, before)):
            facts[sample[task]][word, name[task], other(its, sample[task]), lag] += 1
    return facts


def alike(problem: Problem) -> list[list[int]]:
    """The microbatches of which the same is said, together; what belongs to none is by itself."""
    groups: dict[frozenset[tuple[tuple[object, ...], int]], list[int]] = {}
    for microbatch, facts in said(problem).items():
        groups.setdefault(frozenset(facts.items()), []).append(microbatch)
    return list(groups.values())


def owners(problem: Problem) -> dict[Owner, Counter[LifecycleMoment]]:
    """The changes of each use of a store, by moment."""
    found: dict[Owner, Counter[LifecycleMoment]] = {}
    sample, name = problem.actions.microbatch.tolist(), names(problem)
    for task, at_end, store, delta in changes_of(problem):
        _, stage, piece, _ = name[task]
        found.setdefault((store, stage, piece, sample[task]), Counter())[task, at_end] += delta
    return found


def least_ticks(
    problem: Problem, moments: list[LifecycleMoment]
) -> dict[tuple[LifecycleMoment, LifecycleMoment], int]:
    """The longest path between any two, by all paths within their stage, slice and microbatch."""
    actions, ticks = problem.actions, problem.duration.tolist()
    columns = actions.stage.tolist(), actions.slice.tolist(), actions.microbatch.tolist()
    owner = list(zip(*columns, strict=True))
    inside = owner[moments[0][0]]
    arcs = [(a, b, lag) for a, b, lag in edges_of(problem.edges) if owner[a] == owner[b] == inside]

    def path(task: int, goal: int) -> int:
        ways = [ticks[task] + lag + path(b, goal) for a, b, lag in arcs if a == task]
        longest: int = max([0 if task == goal else NO_PATH, *ways])
        return longest

    return {
        (one, two): path(one[0], two[0]) + ticks[two[0]] * two[1] - ticks[one[0]] * one[1]
        for one in moments
        for two in moments
    }


def rows(problem: Problem, changes: Counter[LifecycleMoment]) -> list[Chain]:
    """Every order of the moments that precedences force, with the levels."""
    ticks, forced = least_ticks(problem, list(changes)), []
    for order in permutations(changes):
        if all(ticks[pair] >= 0 for pair in pairwise(order)):
            levels = [sum(changes[moment] for moment in order[: n + 1]) for n in range(len(order))]
            forced.append(list(zip(order, levels, strict=True)))
    return forced


def life_of(problem: Problem, store: int, chain: Chain) -> Life | None:
    """The use as a lifecycle, by hypothesis 3."""
    moments, levels = [moment for moment, _ in chain], [level for _, level in chain]
    start, end = moments[0], moments[-1]
    if start[1] or not end[1] or levels[-1] or min(levels[:-1], default=0) <= 0:
        return None
    if least_ticks(problem, moments)[start, moments[1]] <= 0:
        return None
    return store, start[0], end[0], levels[0], min(levels[:-1])


def is_cyclic(problem: Problem) -> bool:
    left, arcs = set(range(problem.num_tasks)), list(edges_of(problem.edges))
    while free := left - {after for before, after, _ in arcs if {before, after} <= left}:
        left -= free
    return bool(left)


def problems(count: int, seed: int) -> Iterator[Problem]:
    rng = Random(seed)
    yield from (odd_problem(rng) for _ in range(count))


def test_groups_are_the_microbatches_of_which_the_same_is_said() -> None:
    several = 0
    for problem in problems(sized(500, full=100_000), 1):
        groups, name = alike(problem), names(problem)
        several += len(groups) > 1 and max(map(len, groups)) > 1
        found = index_order(problem).groups
        sample = problem.actions.microbatch
        assert sorted(sample[group[0]].tolist() for group in found) == sorted(groups)
        for group in found:
            for row in group.tolist():
                assert sample[row].tolist() == sample[group[0]].tolist()
                assert len({name[task] for task in row}) == 1
        assert sum(group.size for group in found) == problem.num_tasks
    assert several > 50


TWO = [("0F0", 1, (0,)), ("0F1", 1, (0,))]
STEPS = [("0STEP", 1, (0,)), ("1STEP", 1, (0,))]
F_AND_B = [(f"0{kind}{j}", 1, (0,)) for kind in "FB" for j in range(2)]


@pytest.mark.parametrize(
    ("tasks", "edges", "events"),
    [
        # Another resource, and a change of nothing at the end.
        ([("0F0", 1, (0, 1)), ("0F1", 1, (0,))], (), [("0F1", True, 0, 0)]),
        # Before what is outside, and after it.
        ([*STEPS, *TWO], [("0F0", "0STEP", 0), ("0STEP", "0F1", 0)], ()),
        # One joins its own two tasks, the other each of them to a task outside: 0 and 1.
        (
            [*STEPS, *F_AND_B],
            [("0F0", "0B0", 0), ("0F1", "1STEP", 0), ("0STEP", "0B1", 0)],
            (),
        ),
        (
            [*STEPS, *F_AND_B],
            [("0F0", "0B0", 0), ("0F1", "0STEP", 0), ("1STEP", "0B1", 0)],
            (),
        ),
        # From F to B, and from B to F.
        (F_AND_B, [("0F0", "0B0", 0), ("0B1", "0F1", 0)], ()),
    ],
)
def test_what_is_said_of_two_microbatches_is_not_mistaken(
    tasks: list[Task], edges: list[tuple[str, str, int]], events: list[tuple[str, bool, int, int]]
) -> None:
    store = Store(name="memory", capacity=1)
    problem = by_hand(tasks, edges, resources=RESOURCES, stores=[store], events=events)
    assert all(group.shape[1] == 1 for group in index_order(problem).groups)
    assert all(len(group) == 1 for group in alike(problem))


def test_chains_lifecycles_and_limits_are_what_every_order_of_moments_says() -> None:
    seen: Counter[str] = Counter()
    for problem in problems(sized(350, full=50_000), 2):
        uses = owners(problem)
        if is_cyclic(problem) or max(map(len, uses.values()), default=0) > MOST_MOMENTS:
            continue
        order, groups = index_order(problem), alike(problem)
        forced = {owner: rows(problem, changes) for owner, changes in uses.items()}
        lives = {o: life_of(problem, o[0], found[0]) for o, found in forced.items() if found}
        unclear = {owner[0] for owner in uses if not lives.get(owner)}
        clear = {
            life: group
            for group in groups
            for owner, life in lives.items()
            if life and owner[0] not in unclear and owner[3] == group[0]
        }
        told = {(x.store, x.first, x.last, x.acquired, x.held): x for x in order.lifecycles}
        assert told.keys() == clear.keys()
        limits = {life: _limit(problem, life) for life in clear}
        assert limits == {life: order.limit(told[life]) for life in told}
        edges = [
            edge
            for life, group in clear.items()
            for edge in _edges(problem, life, group, limits[life] or 0)
        ]
        assert sorted(edges_of(order.memory_edges)) == sorted(edges)
        seen += Counter(none=len(unclear), life=len(told), edge=len(edges))
        seen["chain"] += _same_chains(order, forced)
    assert min(seen["none"], seen["chain"], seen["life"], seen["edge"]) > 50


def _same_chains(order: IndexOrder, forced: dict[Owner, list[Chain]]) -> int:
    """One chain for each use, one that precedences force, in stores where there is one for all."""
    unclear = {owner[0] for owner, found in forced.items() if not found}
    kept = {owner: found for owner, found in forced.items() if owner[0] not in unclear}
    assert order.chains.keys() == {owner[0] for owner in kept}
    for store, chains in order.chains.items():
        wanted = [found for owner, found in kept.items() if owner[0] == store]
        assert len(chains) == len(wanted)
        for chain in chains:
            wanted.remove(next(found for found in wanted if chain in found))
    return len(kept)


def _limit(problem: Problem, life: Life) -> int | None:
    """The most uses of which one more may begin, and that one; -1 where not even one may."""
    store, _, _, acquired, held = life
    home = problem.stores[store]
    if home.capacity is None:
        return None
    fitting = [n for n in range(100) if home.base + acquired + n * held <= home.capacity]
    return max(fitting) + 1 if fitting else -1


def _edges(problem: Problem, life: Life, group: list[int], k: int) -> list[tuple[int, int, int]]:
    """The first task of microbatch j after the last of j - k."""
    name = dict(
        zip(
            zip(names(problem), problem.actions.microbatch.tolist(), strict=True),
            range(problem.num_tasks),
            strict=True,
        )
    )
    first, last = (names(problem)[task] for task in life[1:3])
    pairs = zip(group, group[k:], strict=False) if k > 0 else ()
    return [(name[last, earlier], name[first, later], 0) for earlier, later in pairs]
