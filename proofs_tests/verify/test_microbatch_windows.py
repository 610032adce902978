"""Certificates by windows of successive microbatches, and the excerpts that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from bubbleproof.theory.model.problem import Edges, Problem, Resource
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.certificates.certificate_rule import DirectCertificate, refusal
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.microbatch_windows import (
    MOST_WINDOWS,
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
    windows_refusal,
)
from bubbleproof.verify.certificates.one_machine import OneMachine, longest_paths
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork
from proofs_tests.solvers.random_groups import random_groups
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand
from proofs_tests.verify.odd_problems import odd_problem
from proofs_tests.verify.test_volume import queue

LAST = OneMachine(resource=0, tasks=(1,), bound=10)  # of one microbatch: B ends 10 ticks after F


def window(count: int = 1, times: int = 1, proof: DirectCertificate = LAST) -> MicrobatchWindow:
    return MicrobatchWindow(count=count, ranks=(0,), proof=proof, times=times)


def claim(bound: int, *windows: MicrobatchWindow) -> MicrobatchWindows:
    return MicrobatchWindows(first=0, store=0, windows=windows, bound=bound)


# Of `queue` with room for 2 (K = 2) a microbatch takes 10 ticks, and microbatches 0, 2 and 4 follow
# one another: 30 ticks for 5 of them.
THRICE = claim(30, window(times=3))


def test_windows_follow_one_another() -> None:
    assert refusal(queue(5, 2), THRICE) is None
    assert refusal(queue(6, 2), THRICE) is None
    assert refusal(queue(5, 2, base=3), THRICE) is None
    assert refusal(queue(5, 2), replace(THRICE, bound=31)) == (
        "the windows do not prove a bound of 31"
    )
    each = claim(30, window(), window(), window())
    assert refusal(queue(5, 2), each) is None


def test_longer_windows_by_other_proofs() -> None:
    """Two microbatches hold a unit for 10 ticks each, the second 2 later: 12 ticks of one's room.

    Of room for 1 (K = 1) they take (10 + 10) ticks, and window follows window without a gap.
    """
    pair = window(2, 2, Volume(store=0, bound=20))
    assert refusal(queue(4, 1), claim(40, pair)) is None
    assert Exhaustive(queue(3, 1)).optimum() == 30
    assert refusal(queue(4, 1), claim(30, window(3, proof=Volume(store=0, bound=30)))) is None
    assert refusal(queue(3, 1), claim(40, pair)) == (
        "the windows need 4 identical microbatches, and there are 3"
    )


def chain(m: int, capacity: int = 1) -> Problem:
    """Three ranks, F of 1 and B of 2 ticks: a microbatch takes 9, of which the first is rank 0's.

    A unit is held from the first F of rank 1 to its B: 1 + 1 + 2 + 2 = 6 ticks.
    """
    pipeline = Pipeline(num_ranks=3, num_microbatches=m, forward=1, backward=2)
    return replace(pipeline, capacity=(None, capacity, None)).problem()


def test_heads_tails_and_paths_through_what_is_left_out() -> None:
    """The window of rank 1 lies between 1 tick of rank 0 before and 2 behind: 1 + 4 * 6 + 2."""
    problem = chain(4)
    first, last = problem.task("1F0"), problem.task("1B0")
    short = Excerpts(problem, first, 1).of(1, (1,))
    assert isinstance(short, Problem)
    assert (short.num_tasks, short.edges.lag.tolist()) == (2, [3])  # rank 2's F and B between
    assert (short.task("1F0"), short.task("1B0")) == (0, 1)
    proof = OneMachine(resource=0, tasks=(1,), bound=6)
    windows = (MicrobatchWindow(count=1, ranks=(1,), proof=proof, times=4),)
    found = MicrobatchWindows(first=first, store=1, windows=windows, bound=27)
    assert refusal(problem, found) is None
    assert last > first
    assert refusal(problem, replace(found, bound=28)) is not None


def test_an_excerpt_leaves_out_what_it_must() -> None:
    """Other microbatches, ranks, and every store of which a use is cut."""
    problem = chain(4)
    excerpts = Excerpts(problem, problem.task("1F0"), 1)
    two, all_of_it = excerpts.of(2, (1,)), excerpts.of(4, (0, 1, 2))
    assert isinstance(two, Problem)
    assert isinstance(all_of_it, Problem)
    assert two.num_tasks == 4
    assert set(two.events.store.tolist()) == {1}
    assert all_of_it.num_tasks == problem.num_tasks
    assert [r.rank for r in all_of_it.resources] == [0, None, None, None]
    assert set(all_of_it.events.store.tolist()) == set(problem.events.store.tolist())


def split_lifecycle(home: int = 0, lag: int = 6) -> Problem:
    """As ``queue(3, 1)``, with B elsewhere or sooner."""
    return by_hand(
        [(f"0F{j}", 2, (0,)) for j in range(3)] + [(f"0B{j}", 2, (home,)) for j in range(3)],
        [(f"0F{j}", f"0B{j}", lag) for j in range(3)],
        resources=[Resource(name=f"rank {r}", rank=r) for r in range(2)],
        stores=queue(3, 1).stores,
        events=[(f"0{k}{j}", k == "B", 0, 1 - 2 * (k == "B")) for k in "FB" for j in range(3)],
    )


NO_LIFECYCLE = "no lifecycle of that store begins with that task"


@pytest.mark.parametrize(
    ("problem", "damaged", "sentence"),
    [
        # Lemma 2, hypothesis 1: without a capacity five microbatches take 20 ticks, not 30.
        (queue(5, None), THRICE, "the store has no capacity, or no room for one microbatch"),
        (queue(5, 0), THRICE, "the store has no capacity, or no room for one microbatch"),
        (queue(5, 2), replace(THRICE, store=1), NO_LIFECYCLE),
        (queue(5, 2), replace(THRICE, first=1), NO_LIFECYCLE),
        (queue(5, 2), replace(THRICE, first=-1), NO_LIFECYCLE),
        # A use of the store that is no lifecycle: it gives 4 units at once.
        (
            replace(
                queue(5, 2),
                events=replace(queue(5, 2).events, delta=np.tile([4, -4], 5) * -1),
            ),
            THRICE,
            NO_LIFECYCLE,
        ),
        # Hypothesis 2: with room for 2 the third window would begin with microbatch 4 of 0..3.
        (queue(4, 2), THRICE, "the windows need 5 identical microbatches, and there are 4"),
        # With room for 3 (K = 3) windows begin with 0, 3 and 6.
        (queue(5, 3), THRICE, "the windows need 7 identical microbatches, and there are 5"),
        # Hypothesis 3.
        (
            queue(5, 2),
            claim(30, window(times=3, proof=replace(LAST, objective="span_idle"))),
            "window 0: its proof must be of a whole makespan",
        ),
        (
            queue(5, 2),
            claim(30, window(times=3, proof=replace(LAST, bound=10.0))),  # type: ignore[arg-type]  # a float, on purpose
            "window 0: its proof must be of a whole makespan",
        ),
        (
            queue(5, 2),
            claim(30, window(times=3, proof=replace(LAST, bound=11))),
            "window 0: the tasks do not prove a bound of 11",
        ),
        (
            queue(5, 2),
            claim(10, window(), window(times=0)),
            "window 1: it must be taken once or more, got 0",
        ),
        (
            queue(5, 2),
            claim(10, window(), window(times=-1)),
            "window 1: it must be taken once or more, got -1",
        ),
        (
            queue(5, 2),
            claim(10, window(), window(times=1.0)),  # type: ignore[arg-type]  # a float, on purpose
            "window 1: it must be taken once or more, got 1.0",
        ),
        (
            queue(5, 2),
            claim(10, window(), window(times=1 << 70)),
            f"the windows need {2 * (1 << 70) + 1} identical microbatches, and there are 5",
        ),
        # Excerpts, hypothesis 1: B on a rank of its own excludes no F.
        (
            split_lifecycle(home=1),
            claim(30, MicrobatchWindow(count=3, ranks=(0, 1), proof=LAST)),
            "window 0: the lifecycle's first and last task share no resource",
        ),
        (
            split_lifecycle(home=1),
            claim(30, window(3)),
            "window 0: the ranks are not those of the lifecycle's first and last task",
        ),
        # Excerpts, hypothesis 2: a path of -1 ticks from the end of F to the start of B.
        (
            split_lifecycle(lag=-1),
            claim(30, window(3)),
            "window 0: the lifecycle's last task need not wait for its first",
        ),
        # And what counts and ranks say.
        (
            queue(5, 2),
            claim(10, window(6)),
            "window 0: a window has 1 to 5 identical microbatches, got 6",
        ),
        (
            queue(5, 2),
            claim(10, window(0)),
            "window 0: a window has 1 to 5 identical microbatches, got 0",
        ),
        (
            queue(5, 2),
            claim(10, window(1.0)),  # type: ignore[arg-type]  # a float, on purpose
            "window 0: counts and ranks must be whole numbers",
        ),
        (
            queue(5, 2),
            claim(10, replace(window(), ranks=(0, 1))),
            "window 0: its ranks must be some of the problem's 1",
        ),
        (queue(5, 2), claim(0), f"windows must be 1 to {MOST_WINDOWS}, got 0"),
        (
            queue(5, 2),
            claim(0, *[window()] * (MOST_WINDOWS + 1)),
            f"windows must be 1 to {MOST_WINDOWS}, got {MOST_WINDOWS + 1}",
        ),
        (
            queue(5, 2),
            replace(THRICE, objective="span_idle"),
            "windows bound the makespan, not 'span_idle'",
        ),
        (
            queue(5, 2),
            replace(THRICE, bound=29.5),  # type: ignore[arg-type]  # a float, on purpose
            "a certificate proves a whole bound, got 29.5",
        ),
    ],
)
def test_damage_is_refused(problem: Problem, damaged: MicrobatchWindows, sentence: str) -> None:
    assert refusal(problem, damaged) == sentence


def test_zeros() -> None:
    """B of no ticks: a use of 2 + 6 ticks, 0, 2 and 4 one after the other. F of none: no use."""
    problem = queue(5, 2)
    ticks = problem.duration.copy()
    ticks[1::2] = 0
    brief = replace(problem, duration=ticks)
    assert refusal(brief, claim(24, window(times=3, proof=replace(LAST, bound=8)))) is None
    optimum = Exhaustive(brief).optimum()
    assert optimum is not None
    assert optimum >= 24
    nothing = replace(problem, duration=0 * ticks, edges=Edges())
    assert refusal(nothing, claim(0, window(proof=replace(LAST, bound=0)))) == NO_LIFECYCLE


def test_one_window_needs_no_capacity() -> None:
    """Five microbatches of 4 ticks' work on one rank, the last B 2 ticks long: 20 without room."""
    alone = claim(20, window(5, proof=OneMachine(resource=0, tasks=tuple(range(10)), bound=20)))
    assert refusal(queue(5, 1), alone) is None
    unlimited = queue(5, None)
    assert Exhaustive(unlimited).optimum() == 20
    assert refusal(unlimited, alone) is None


def test_a_cycle_proves_nothing() -> None:
    problem = queue(5, 2)
    edges = problem.edges
    back = Edges(
        before=np.append(edges.before, problem.task("0B0")),
        after=np.append(edges.after, problem.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    found = refusal(replace(problem, edges=back), THRICE)
    assert found == "the problem's precedences have a cycle"


def test_another_microbatch_ends_the_window() -> None:
    """One that takes longer is none of the group, which then has 4."""
    problem = queue(5, 2)
    ticks = problem.duration.copy()
    ticks[problem.task("0F4")] = 3
    found = refusal(replace(problem, duration=ticks), THRICE)
    assert found == "the windows need 5 identical microbatches, and there are 4"


def random_claims(rng: Random, problem: Problem) -> Iterator[MicrobatchWindows]:
    """All that windows show if each is proved to take what the exhaustive walk says."""
    order, paths = index_order(problem), longest_paths(problem, "makespan", 0)
    if paths is None:
        return
    for life in order.lifecycles:
        excerpts, windows = Excerpts(problem, life.first, life.store), list[MicrobatchWindow]()
        for _ in range(rng.choice((1, 1, 2))):
            ranks = tuple(r for r in range(problem.num_ranks) if rng.random() < 0.7)
            count = rng.choice((1, 1, 2, 2, 3))
            short = excerpts.of(count, ranks)
            best = None if isinstance(short, str) else Exhaustive(short).optimum()
            if best is not None:
                proof = Drup(bound=best, lemmas=())
                times = rng.choice((1, 1, 2))
                windows.append(MicrobatchWindow(count=count, ranks=ranks, proof=proof, times=times))
        if windows:
            row, limit = order.row_of[life.last], order.limit(life) or 0
            steps = [each.count - 1 + limit for each in windows for _ in range(each.times)]
            last = min(len(row) - 1, max(0, sum(steps) - limit))
            bound = sum(each.times * each.proof.bound for each in windows)
            bound += paths[0][life.first] + paths[1][int(row[last])]
            yield MicrobatchWindows(
                first=life.first, store=life.store, windows=tuple(windows), bound=bound
            )


def believed(_short: Problem, _proof: DirectCertificate) -> str | None:
    """No proof is asked for: what windows claim is true of their excerpts."""
    return None


@pytest.mark.sweep
def test_true_windows_prove_no_more_than_the_optimum() -> None:
    """The two lemmas alone, on random problems: what windows take by an exhaustive walk adds up."""
    rng, proved, exact = Random(7), 0, 0
    for seed in range(sized(40, full=3000)):
        problem = (random_problem, odd_problem, random_groups)[seed % 3](Random(seed))
        try:
            claims = [*random_claims(rng, problem)]
            optimum = Exhaustive(problem, USUAL_STATES).optimum() if claims else None
        except TooMuchWork:
            continue
        for found in claims:
            if optimum is not None and windows_refusal(problem, found, believed) is None:
                assert found.bound <= optimum, seed
                proved += 1
                exact += found.bound == optimum
    assert proved > sized(4, full=300), (proved, exact)
    assert exact > 0
