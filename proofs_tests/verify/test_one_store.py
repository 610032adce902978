"""Certificates by one resource and one store: what they prove, and what each hypothesis is for.

``early`` and ``claim`` state the module's lemmas a second time, by subsets instead of sums; each
``careless`` version forgets one of their hypotheses. All are held against an exhaustive walk that
knows no lemma: what the checker accepts is never above the optimum, and every careless version is,
somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.store_bounds import acquiring
from bubbleproof.theory.model.problem import Edges, Problem, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.one_machine import longest_paths
from bubbleproof.verify.certificates.one_store import OneStore
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand, split

ROWS = range(4)
# Rank 0 runs four F and four B of 2 ticks. B_j starts 6 ticks after the end of F_j, F_j holds 1
# unit until B_j ends, and there is room for 2.
QUEUE = by_hand(
    [(f"0F{j}", 2, (0,)) for j in ROWS] + [(f"0B{j}", 2, (0,)) for j in ROWS],
    [(f"0F{j}", f"0B{j}", 6) for j in ROWS],
    stores=[Store(name="memory", capacity=2)],
    events=[(f"0F{j}", False, 0, 1) for j in ROWS] + [(f"0B{j}", True, 0, -1) for j in ROWS],
)
# Before B_0, 2 + 6 ticks from the start, only two F are done: 4 of 8 ticks are idle. Reversed, F_3
# ends 6 + 2 ticks before the end, and behind it are two B at most. Of the 16 ticks of work 4 + 4
# are done in these 16 ticks, so that the makespan is at least 16 + 16 - 8.
TRUE = OneStore(resource=0, store=0, begin=8, end=8, bound=24)


def test_a_true_certificate_is_accepted_and_so_is_a_modest_one() -> None:
    assert refusal(QUEUE, TRUE) is None
    assert refusal(QUEUE, replace(TRUE, bound=23)) is None
    assert refusal(QUEUE, replace(TRUE, end=0, bound=20)) is None
    # The span of the rank is the makespan, and its work 16.
    span = replace(TRUE, objective="span_idle", bound=24 - 16)
    assert refusal(QUEUE, span) is None
    assert refusal(QUEUE, replace(span, bound=9)) == "the store does not prove a bound of 9"


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (replace(TRUE, bound=25), "the store does not prove a bound of 25"),
        (replace(TRUE, end=0), "the store does not prove a bound of 24"),
        # In the first 10 ticks B_0 may run for two, and so it is on the other side.
        (replace(TRUE, begin=10, end=10, bound=25), "the store does not prove a bound of 25"),
        (replace(TRUE, begin=20), "in 20 and 8 ticks resource 0 may do all its work"),
        (replace(TRUE, objective="span_idle"), "the store does not prove a bound of 24"),
        (
            replace(TRUE, objective="peak"),
            "the objective must be makespan or span_idle, got 'peak'",
        ),
        (replace(TRUE, store=1), "store 1 is none of the problem's 1"),
        (replace(TRUE, store=-1), "store -1 is none of the problem's 1"),
        (replace(TRUE, resource=1), "no task occupies resource 1"),
        (replace(TRUE, resource=-1), "no task occupies resource -1"),
        (
            replace(TRUE, resource=1, objective="span_idle"),
            "rank 1 is none of the problem's 1",
        ),
    ],
)
def test_damage_is_refused(damaged: OneStore, sentence: str) -> None:
    assert refusal(QUEUE, damaged) == sentence


def test_what_a_capacity_proves_does_not_hold_without_it() -> None:
    for capacity in (3, None):
        # With room for three F, 6 of 8 ticks are work; without a limit, 8 are.
        assert refusal(QUEUE.with_capacity(capacity), TRUE) is not None
    assert refusal(QUEUE.with_capacity(1), TRUE) is None  # a tighter problem is no shorter
    # With no room for any, nothing is done in either 8 ticks: 16 + 16.
    assert refusal(QUEUE.with_capacity(0), replace(TRUE, bound=32)) is None


def test_a_cycle_proves_nothing() -> None:
    edges = QUEUE.edges
    back = Edges(
        before=np.append(edges.before, QUEUE.task("0B0")),
        after=np.append(edges.after, QUEUE.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    sentence = "the problem's precedences have a cycle"
    assert refusal(replace(QUEUE, edges=back), TRUE) == sentence


def test_the_bound_of_a_long_pipeline_in_closed_form() -> None:
    """p ranks, v chunks in a loop, room for p v activations on rank 0, backwards in two halves.

    The first I on rank 0 waits for v p forwards and p - 1 other I; until then rank 0 has room for
    v p forwards of its own. So it is idle for (p - 1) tI: m v (tF + tI + tW) + (p - 1) tI.
    """
    p, v, m = 4, 3, 16
    pipeline = split(p, m, p * v, (10, 11, 9), v=v)
    problem = pipeline.problem()
    certificate = lower_bounds(problem).best
    assert isinstance(certificate, OneStore)
    assert certificate.bound == m * v * 30 + (p - 1) * 11
    assert certificate.begin == v * p * 10 + (p - 1) * 11
    assert refusal(problem, certificate) is None
    assert refusal(problem, replace(certificate, bound=certificate.bound + 1)) is not None


# What a careless reader of the lemmas might forget.
CARELESS = ("released", "least", "others", "started", "left", "twice")


def changed(problem: Problem, store: int) -> list[tuple[int, bool, int]]:
    """(task, at its end, units) of a store, summed over each moment."""
    sums: dict[tuple[int, bool], int] = {}
    events = problem.events
    for task, at_end, where, delta in zip(
        events.task.tolist(),
        events.at_end.tolist(),
        events.store.tolist(),
        events.delta.tolist(),
        strict=True,
    ):
        if where == store:
            sums[task, at_end] = sums.get((task, at_end), 0) + delta
    return [(task, at_end, delta) for (task, at_end), delta in sums.items()]


def early(
    problem: Problem,
    heads: Sequence[int],
    pair: tuple[int, int],
    begin: int,
    *,
    is_mirrored: bool,
    careless: str = "",
) -> int:
    """The most work of the resource before ``begin``, over all sets of tasks for which there may be
    room."""
    resource, store = pair
    rows, base = changed(problem, store), problem.stores[store].base
    if is_mirrored:
        base += 0 if careless == "left" else sum(delta for *_, delta in rows)
        rows = [(task, not at_end, -delta) for task, at_end, delta in rows]
    ticks: list[int] = problem.duration.tolist()
    acquired = {task: delta for task, at_end, delta in rows if not at_end and delta > 0}
    released = sum(
        -delta
        for task, at_end, delta in rows
        if delta < 0 and heads[task] + ticks[task] * at_end < begin
    )
    users = problem.occupancy.task[problem.occupancy.resource == resource].tolist()
    done = {task: max(0, min(ticks[task], begin - heads[task])) for task in users}
    if careless == "started":
        done = {task: size if size == ticks[task] else 0 for task, size in done.items()}
    takers = [task for task in users if task in acquired and heads[task] < begin]
    rest: int = 0 if careless == "others" else sum(done[t] for t in users if t not in acquired)
    capacity = problem.stores[store].capacity
    assert capacity is not None
    room = capacity - base + (0 if careless == "released" else released)
    each = [acquired[task] for task in takers]
    unit = (max if careless == "least" else min)(each, default=1)
    most: int = max(
        sum(done[task] for task in chosen)
        for size in range(len(takers) + 1)
        for chosen in combinations(takers, size)
        if size * unit <= max(0, room)
    )
    return rest + most


def claims(
    problem: Problem, pair: tuple[int, int], careless: str = ""
) -> Iterator[tuple[int, int, int]]:
    """(bound, begin, end) for all instants at which something begins or ends."""
    paths = longest_paths(problem, "makespan", pair[0])
    assert paths is not None
    users = problem.occupancy.task[problem.occupancy.resource == pair[0]]
    work, sides = int(problem.duration[users].sum()), []
    for is_mirrored, heads in enumerate(paths):
        instants = {
            max(0, heads[t] + k) for t in users.tolist() for k in (0, int(problem.duration[t]))
        }
        sides.append(
            [
                (
                    int(at),
                    early(
                        problem,
                        heads,
                        pair,
                        int(at),
                        is_mirrored=bool(is_mirrored),
                        careless=careless,
                    ),
                )
                for at in sorted(instants)
            ]
        )
    for begin, before in sides[0]:
        for end, behind in sides[1]:
            if work > before + behind or careless == "twice":
                yield begin + end + work - before - behind, begin, end


def highest(problem: Problem, pair: tuple[int, int], careless: str) -> int:
    """The greatest bound that is claimed."""
    return max((bound for bound, *_ in claims(problem, pair, careless)), default=0)


def test_what_is_left_at_the_end_counts_when_time_is_reversed() -> None:
    """Two W of 2 ticks free what lay there from the beginning, 1 unit each: 4 ticks in all.

    Reversed they acquire it, from a load of 0. A load of 2, that of the beginning, would leave no
    room for any of them in the last 4 ticks: 4 + 4.
    """
    problem = by_hand(
        [("0W0", 2, (0,)), ("0W1", 2, (0,))],
        stores=[Store(name="memory", base=2, capacity=2)],
        events=[("0W0", True, 0, -1), ("0W1", True, 0, -1)],
    )
    assert Exhaustive(problem).optimum() == highest(problem, (0, 0), "") == 4
    assert highest(problem, (0, 0), "left") == 8
    claim = OneStore(resource=0, store=0, begin=0, end=4, bound=8)
    assert refusal(problem, claim) == "in 0 and 4 ticks resource 0 may do all its work"


def cases(count: int) -> Iterator[tuple[Problem, int]]:
    """Random problems with memory events anywhere, and their optima."""
    rng = Random(3)
    for _ in range(count):
        problem = random_problem(rng)
        try:
            optimum = Exhaustive(problem, USUAL_STATES).optimum()
        except TooMuchWork:
            continue
        if optimum is not None and not lower_bounds(problem).is_cyclic:
            yield problem, optimum


@pytest.mark.sweep
def test_nothing_above_the_optimum_is_accepted_and_every_careless_version_is_above() -> None:
    beaten, exact = set[str](), 0
    for problem, optimum in cases(sized(18, full=4000)):
        for resource, store in acquiring(problem):
            pair = resource, store
            found = sorted(claims(problem, pair), reverse=True)
            assert all(bound <= optimum for bound, *_ in found)
            for bound, begin, end in found[:: max(1, len(found) // 5)]:
                claim = OneStore(resource=resource, store=store, begin=begin, end=end, bound=bound)
                assert refusal(problem, claim) is None
                assert refusal(problem, replace(claim, bound=bound + 1)) is not None
            exact += any(bound == optimum for bound, *_ in found)
            for careless in CARELESS:
                if careless not in beaten and highest(problem, pair, careless) > optimum:
                    beaten.add(careless)
    assert beaten == set(CARELESS) - {"left"}
    assert exact > 0


def test_the_solver_finds_the_best_of_all_instants_of_small_problems() -> None:
    """Only heads of what does not acquire are tried; the others bring nothing here."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        pipeline = Pipeline(
            num_ranks=2,
            num_microbatches=2,
            num_chunks=2,
            split_backward=True,
            capacity=3,
            forward=int(rng.integers(0, 5)),
            input_backward=int(rng.integers(0, 5)),
            weight_backward=int(rng.integers(0, 5)),
            latency=int(rng.integers(0, 3)),
        )
        problem = pipeline.problem()
        best = max(max(claims(problem, pair))[0] for pair in acquiring(problem))
        assert lower_bounds(problem).best.bound >= best
