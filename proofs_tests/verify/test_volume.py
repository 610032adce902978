"""Certificates by what a store must hold, and for how long."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.problem import Edges, Problem, Resource, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.chains import Lifecycle
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.one_machine import longest_paths
from bubbleproof.verify.certificates.volume import Volume, volume_bound
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand
from proofs_tests.verify.odd_problems import odd_problem

RANKS = tuple(Resource(name=f"rank {r}", rank=r) for r in range(2))


def queue(m: int, room: int | None, *, ranks: int = 1, base: int = 0) -> Problem:
    """Each rank runs m F and m B of 2 ticks; B_j starts 6 ticks after the end of F_j.

    F_j takes 1 unit of the one store, which B_j gives back: a use of 10 ticks.
    """
    pairs = [(stage, j) for stage in range(ranks) for j in range(m)]
    return by_hand(
        [(f"{g}{kind}{j}", 2, (g,)) for g, j in pairs for kind in "FB"],
        [(f"{g}F{j}", f"{g}B{j}", 6) for g, j in pairs],
        resources=RANKS[:ranks],
        stores=[Store(name="memory", base=base, capacity=room if room is None else room + base)],
        events=[
            (f"{g}{kind}{j}", kind == "B", 0, 1 if kind == "F" else -1)
            for g, j in pairs
            for kind in "FB"
        ],
    )


# Four uses of 10 ticks are 40. The second F starts 2 ticks after the first, and the last B but one
# ends 2 before the last, so that of room for 2 in 2 + 2 ticks only 1 is used: (40 + 4) / 2.
TRUE = Volume(store=0, bound=22)


def test_a_true_certificate_is_accepted_and_so_is_a_modest_one() -> None:
    problem = queue(4, 2)
    assert refusal(problem, TRUE) is None
    assert refusal(problem, replace(TRUE, bound=21)) is None
    assert refusal(queue(4, 2, base=3), TRUE) is None
    # Room for 3: 2 are missing for 4 ticks, and then 1: (40 + 8 + 4) / 3 = 17 1/3.
    assert refusal(queue(4, 3), Volume(store=0, bound=18)) is None
    assert refusal(queue(4, 3), Volume(store=0, bound=19)) is not None


@pytest.mark.parametrize(
    ("problem", "damaged", "sentence"),
    [
        (queue(4, 2), replace(TRUE, bound=23), "the volume does not prove a bound of 23"),
        (queue(3, 2), TRUE, "the volume does not prove a bound of 22"),
        (queue(4, 2), replace(TRUE, store=1), "store 1 is none of the problem's 1"),
        (queue(4, 2), replace(TRUE, store=-1), "store -1 is none of the problem's 1"),
        (
            queue(4, 2),
            replace(TRUE, objective="span_idle"),
            "a volume bounds the makespan, not 'span_idle'",
        ),
        (queue(4, None), TRUE, "store 0 has no room, or a use that is no lifecycle"),
        (queue(4, 0), TRUE, "store 0 has no room, or a use that is no lifecycle"),
    ],
)
def test_damage_is_refused(problem: Problem, damaged: Volume, sentence: str) -> None:
    assert refusal(problem, damaged) == sentence


def test_a_use_that_holds_nothing_for_a_while_proves_nothing() -> None:
    """F gives its unit back when it ends: its use is 2 ticks long, and B takes none."""
    problem = queue(4, 2)
    early = replace(
        problem.events, task=np.array(problem.events.task), at_end=problem.events.at_end
    )
    early.task[early.at_end] = [problem.task(f"0F{j}") for j in range(4)]
    short = replace(problem, events=early)
    assert refusal(short, TRUE) == "the volume does not prove a bound of 22"
    # Four uses of 2 ticks in room for 2, 6 + 2 ticks behind the last; as 8 >= 2 * 1 * 4, room for
    # 1 is missing in 2 + 2 ticks: (8 + 4) / 2 + 8.
    assert refusal(short, Volume(store=0, bound=14)) is None
    assert refusal(short, Volume(store=0, bound=15)) is not None


def test_a_store_that_is_never_filled_has_no_two_ends() -> None:
    """One use of 10 ticks in room for 50: 49 + 48 + ... are not missing at either end."""
    problem = queue(1, 50)
    assert Exhaustive(problem).optimum() == 10
    careless = -(-(10 + 4 * sum(range(1, 50))) // 50)
    assert careless > 10
    assert refusal(problem, Volume(store=0, bound=11)) is not None


def test_firsts_on_two_ranks_begin_together() -> None:
    """Two ranks fill one store of 2 units at once: 4 uses of 10 ticks take 20, not (40 + 4) / 2."""
    problem = queue(2, 2, ranks=2)
    assert Exhaustive(problem).optimum() == 20
    assert refusal(problem, Volume(store=0, bound=20)) is None
    assert refusal(problem, Volume(store=0, bound=22)) == "the volume does not prove a bound of 22"


def in_a_circle() -> Problem:
    """A queue whose first forward waits for its own backward."""
    problem = queue(4, 2)
    edges = problem.edges
    back = Edges(
        before=np.append(edges.before, problem.task("0B0")),
        after=np.append(edges.after, problem.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    return replace(problem, edges=back)


def test_a_cycle_proves_nothing() -> None:
    assert refusal(in_a_circle(), TRUE) == "the problem's precedences have a cycle"


def test_it_is_the_best_bound_of_a_tight_loop() -> None:
    """Eight ranks, two chunks, room for 12: activations of stages 0 and 8 last 126 and 62 ticks.

    (2 + 4) * 16 + 30 messages and (2 + 4) * 8 + 14. Room for 12 less 1, ... less 11 is missing for
    2 + 4 ticks: (32 * 188 + 6 * 66) / 12 = 534 1/3.
    """
    problem = Pipeline(
        num_ranks=8,
        num_microbatches=32,
        num_chunks=2,
        forward=2,
        backward=4,
        latency=1,
        capacity=12,
    ).problem()
    best = lower_bounds(problem).best
    assert best == Volume(store=0, bound=535)
    assert refusal(problem, best) is None


def stated(problem: Problem, store: int) -> int | None:
    """The lemma a second time, with every sum and path written out; None: a hypothesis fails."""
    order, home = index_order(problem), problem.stores[store]
    paths = longest_paths(problem, "makespan", 0)
    lives = [life for life in order.lifecycles if life.store == store]
    if not lives or paths is None or home.capacity is None or home.capacity - home.base <= 0:
        return None
    room, (heads, tails) = home.capacity - home.base, paths
    firsts = [int(task) for life in lives for task in order.row_of[life.first]]
    lasts = [int(task) for life in lives for task in order.row_of[life.last]]
    begin, end = min(heads[task] for task in firsts), min(tails[task] for task in lasts)
    if min(begin, end) < 0:
        return None
    volume = sum(life.held * len(order.row_of[life.first]) * ticks(problem, life) for life in lives)
    most = max(level for chain in order.chains[store] for _, level in chain)
    each = shortest(problem, firsts) + shortest(problem, lasts)
    missing = [room - k * most for k in range(1, room) if k * most <= room - 1]
    if volume >= room * len(missing) * each:
        volume += each * sum(missing)
    return begin + end + ceil(Fraction(volume, room))


def ticks(problem: Problem, life: Lifecycle) -> int:
    """From the start of the first task to the end of the last, by all paths of the microbatch."""
    sample, length = problem.actions.microbatch.tolist(), problem.duration.tolist()
    edges = problem.edges
    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()

    def longest(task: int) -> float:
        ways: list[float] = [
            length[task] + lag + longest(after)
            for before, after, lag in zip(*columns, strict=True)
            if before == task and sample[after] == sample[task]
        ]
        return max([length[task] if task == life.last else float("-inf"), *ways])

    return int(longest(life.first))


def shortest(problem: Problem, tasks: list[int]) -> int:
    """The ticks of the shortest, where one resource runs them all."""
    homes = problem.occupancy
    pairs = set(zip(homes.task.tolist(), homes.resource.tolist(), strict=True))
    shared = [r for r in range(len(problem.resources)) if all((t, r) in pairs for t in tasks)]
    return min(int(problem.duration[task]) for task in tasks) if shared else 0


def test_it_is_what_a_second_statement_of_the_lemma_says() -> None:
    proved = apart = 0
    for seed in range(sized(120, full=20_000)):
        problem = (odd_problem, random_problem)[seed % 2](Random(seed))
        paths = longest_paths(problem, "makespan", 0)
        if paths is None:
            continue
        for store in range(len(problem.stores)):
            found = volume_bound(problem, index_order(problem), store, *paths)
            assert found == stated(problem, store)
            proved += found is not None
            apart += found is None
    assert min(proved, apart) > sized(15, full=50)


@pytest.mark.sweep
def test_nothing_above_the_optimum_is_accepted() -> None:
    """Random problems with memory events anywhere, against a walk that knows no lemma."""
    rng, found = Random(3), 0
    for _ in range(sized(40, full=4000)):
        problem = random_problem(rng)
        bounds = lower_bounds(problem)
        try:
            optimum = Exhaustive(problem, USUAL_STATES).optimum()
        except TooMuchWork:
            continue
        if optimum is None or bounds.is_cyclic:
            continue
        paths = bounds.heads.tolist(), bounds.tails.tolist()
        for store in range(len(problem.stores)):
            bound = volume_bound(problem, bounds.order, store, *paths)
            assert refusal(problem, Volume(store=store, bound=optimum + 1)) is not None
            found += bound is not None
    assert found > sized(5, full=10)
