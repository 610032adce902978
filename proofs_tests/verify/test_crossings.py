"""Certificates by what crosses: lemma 1 on drawn schedules, lemma 2 against exhaustive optima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.store_bounds import first_crossings
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.crossings import MOST_CROSSED, Crossings, _gain
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork

UNLIKE = "store 0 has no room, or the ranks from its own on do not work alike"
Row = Sequence[int]


def loop(p: int, m: int, v: int = 1, cap: int | None = 4, **changes: object) -> Pipeline:
    """F of 2 ticks, B of 4 and links of 1, but for the changes."""
    given = {"forward": 2, "latency": 1, "capacity": cap, **changes}
    if not given.get("split_backward"):
        given.setdefault("backward", 4)
    return Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, **given)  # type: ignore[arg-type]  # any field may change


# Eight ranks, two chunks, room for K = 16; M = 4, m = 2. Forwards cross (4 - x) g + t >= 1 (at -1
# and -3), E = 6 (1 + 5) - 4 * 8 = 4. Of 256 microbatches n = 512, and a microbatch's two
# activations last (2 + 4) 16 + 30 and (2 + 4) 8 + 14 ticks:
# V = 256 * 188 + 6 * 120 = 48,848, and (4 V + 7 * 512 * 4 + 2 * 16 * 512 * 6) / (16 * 6) = 3208.7.
LONG = loop(8, 256, 2, 16).problem()
TRUE = Crossings(store=0, bound=3209)


def test_more_is_proved_than_by_any_one_store() -> None:
    bounds = lower_bounds(LONG)
    assert bounds.best.bound == 3158
    assert first_crossings(LONG, bounds.order, bounds.heads, bounds.tails) == TRUE
    assert refusal(LONG, TRUE) is None
    assert refusal(LONG, replace(TRUE, bound=1)) is None


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (replace(TRUE, bound=3210), "the crossings do not prove a bound of 3210"),
        (replace(TRUE, store=1), "the crossings do not prove a bound of 3209"),
        (replace(TRUE, store=8), "store 8 is none of the problem's 8"),
        (replace(TRUE, store=-1), "store -1 is none of the problem's 8"),
        (
            replace(TRUE, objective="span_idle"),
            "crossings bound the makespan, not 'span_idle'",
        ),
    ],
)
def test_damage_is_refused(damaged: Crossings, sentence: str) -> None:
    assert refusal(LONG, damaged) == sentence


def test_fewer_microbatches_prove_less() -> None:
    fewer = loop(8, 255, 2, 16).problem()
    assert refusal(fewer, TRUE) == "the crossings do not prove a bound of 3209"


UNLIKE_ONES = {
    "no capacity": loop(3, 4, cap=None).problem(),
    "no room": loop(3, 4, cap=0).problem(),
    "W beside F and I": loop(
        3, 4, split_backward=True, input_backward=2, weight_backward=2
    ).problem(),
    "a wave": loop(3, 4, 2, placement="wave").problem(),
    "a slower forward": loop(3, 4, forward=(2, 3, 2)).problem(),
    "a slower backward": loop(3, 4, backward=(4, 4, 5)).problem(),
    "no time": loop(3, 4, forward=0).problem(),
    "microbatches that differ": loop(
        1, 4, split_backward=((True, False, True, False),), input_backward=2, weight_backward=2
    ).problem(),
    "too far to look": loop(3, 4, forward=MOST_CROSSED, backward=1).problem(),
}


@pytest.mark.parametrize("name", UNLIKE_ONES)
def test_each_hypothesis_is_asked_for(name: str) -> None:
    assert refusal(UNLIKE_ONES[name], Crossings(store=0, bound=1)) == UNLIKE


def test_a_link_that_is_missing_proves_nothing() -> None:
    problem = loop(3, 4).problem()
    edges = problem.edges
    linked = edges.after == problem.task("1F2")
    assert linked.any()
    kept = {name: getattr(edges, name)[~linked] for name in ("before", "after", "lag")}
    assert refusal(replace(problem, edges=replace(edges, **kept)), Crossings(store=0, bound=1))


def test_what_is_given_back_too_soon_proves_nothing() -> None:
    """F gives back what it took when it ends: the store says nothing of B."""
    problem = loop(3, 4).problem()
    events = problem.events
    task = np.array(events.task)
    for j in range(4):
        task[(task == problem.task(f"0B{j}")) & events.at_end] = problem.task(f"0F{j}")
    early = replace(problem, events=replace(events, task=task))
    assert refusal(early, Crossings(store=0, bound=1)) == UNLIKE


def test_a_rank_that_does_more_proves_nothing() -> None:
    """Rank 1's backwards are rank 2's work as well."""
    problem = loop(3, 4).problem()
    homes = problem.occupancy
    more = [problem.task(f"1B{j}") for j in range(4)]
    task = np.append(homes.task, more)
    order = np.argsort(task, kind="stable")
    resource = np.append(homes.resource, np.full(4, 2))[order]
    busy = replace(problem, occupancy=replace(homes, task=task[order], resource=resource))
    assert refusal(busy, Crossings(store=0, bound=1)) == UNLIKE


def test_without_links_it_lies_between_the_volume_and_the_work() -> None:
    """The last rank has nothing behind it: E counts for no link, and an idle tick has a price."""
    problem = loop(3, 40, cap=2).problem()
    assert refusal(problem, Crossings(store=2, bound=lower_bounds(problem).best.bound + 1))


def gain(f: int, b: int, d: int, u: int) -> int:
    """E by its definition, over more values of t than matter."""
    most, ready = max(f, b), b + u
    parts = [
        (most - min(max(t + ready, 0), f)) * max(0, -((t - f - d) // b)) + t
        for t in range(-ready - 3 * b - f - 5, f + d + 6)
    ]
    return (f + b) * (min(parts) + ready) - most * (f + ready + d)


def test_what_is_gained_is_the_least_over_all_t() -> None:
    rng, sizes = Random(1), set[bool]()
    for _ in range(sized(500, full=5_000)):
        given = rng.randint(1, 12), rng.randint(1, 12), rng.randint(0, 9), rng.randint(0, 9)
        assert _gain(*given) == gain(*given)
        sizes.add(gain(*given) > 0)
    assert sizes == {False, True}


def drawn(rng: Random, n: int, f: int, b: int, d: int, u: int) -> list[list[int]]:
    """Starts of F and B on rank r, then on r + 1: orders drawn, some ticks late; links in order."""
    while True:
        words = [_order(rng, n) for _ in range(2)]
        start, free, place = dict[tuple[str, int, int], int](), [0, 0], [0, 0]
        is_moved = True
        while is_moved:
            is_moved = False
            for rank in (0, 1):
                while place[rank] < 2 * n:
                    kind, i = words[rank][place[rank]]
                    other = {"F": ("F", i, 0, f + d), "B": ("B", i, 1, b + u)}[kind]
                    ready = free[rank]
                    if other[2] != rank:
                        if other[:3] not in start:
                            break
                        ready = max(ready, start[other[:3]] + other[3])
                    start[kind, i, rank] = ready + rng.choice((0, 0, 0, 0, 1, 2))
                    free[rank] = start[kind, i, rank] + (f if kind == "F" else b)
                    place[rank] += 1
                    is_moved = True
        if place == [2 * n, 2 * n]:  # else the orders of the two ranks wait for each other
            return [[start[k, i, r] for i in range(n)] for r in (0, 1) for k in "FB"]


def _order(rng: Random, n: int) -> list[tuple[str, int]]:
    """Each B behind its F."""
    found, forwards = list[tuple[str, int]](), 0
    while len(found) < 2 * n:
        backwards = len(found) - forwards
        if forwards < n and (backwards == forwards or rng.random() < 0.5):
            found.append(("F", forwards))
            forwards += 1
        else:
            found.append(("B", backwards))
    return found


def sides(
    sizes: tuple[int, int, int, int], rows: tuple[Row, Row, Row, Row], extra: int = 0
) -> tuple[int, int]:
    """Both sides of lemma 1, with E raised by ``extra``: starts of F and B on rank r and r + 1."""
    f, b, d, u = sizes
    near, back, far, turned = rows
    waited = sum(y - x - f - d for x, y in zip(near, far, strict=True))
    waited += sum(x - y - b - u for x, y in zip(back, turned, strict=True))
    idle = _idle(f, b, near, back) - _idle(f, b, far, turned)
    return max(f, b) * waited, len(near) * (gain(*sizes) + extra) - min(f, b) * idle


def _idle(f: int, b: int, forwards: Row, backwards: Row) -> int:
    """Q: how many more forwards have begun, over the idle ticks."""
    tasks = sorted([(t, f, 1) for t in forwards] + [(t, b, -1) for t in backwards])
    total, held, now = 0, 0, tasks[0][0]
    for begin, ticks, more in tasks:
        assert begin >= now
        total, held, now = total + (begin - now) * held, held + more, begin + ticks
    return total


def test_lemma_1_is_true_of_drawn_schedules() -> None:
    rng = Random(2)
    for number in range(sized(400, full=60_000)):
        any_size = rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 3), rng.randint(0, 3)
        given = any_size if number % 2 else (2, 4, 1, 1)
        near, back, far, turned = drawn(rng, rng.randint(1, 7), *given)
        waited, least = sides(given, (near, back, far, turned))
        assert waited >= least


def test_lemma_1_is_met_by_a_pair_of_ranks_and_no_more_can_be_said() -> None:
    """Three microbatches every 20 ticks: each period waits for as long as the lemma says."""
    period = (0, 8, 18), (14, 22, 30), (3, 13, 21), (9, 17, 25)

    def both(times: int, extra: int = 0) -> tuple[int, int]:
        near, back, far, turned = (
            [start + 20 * turn for turn in range(times) for start in row] for row in period
        )
        return sides((2, 4, 1, 1), (near, back, far, turned), extra)

    (waited, least), (longer, more) = both(4), both(12)
    assert longer - waited == more - least == 8 * 8
    waited, least = both(12, extra=1)
    assert waited < least


SMALL = [
    loop(p, m, v, cap, forward=f, backward=b, latency=lag).problem()
    for p, m, v in ((2, 2, 1), (2, 4, 1), (3, 3, 1), (2, 2, 2))
    for f, b, lag in ((1, 1, 1), (1, 2, 0), (1, 2, 1), (2, 1, 1), (1, 3, 1))
    for cap in (v, v + 1, p * v)
][:: sized(3, full=1)]


@pytest.mark.sweep
def test_nothing_above_the_optimum_is_accepted() -> None:
    tried = 0
    for problem in SMALL:
        try:
            optimum = Exhaustive(problem, USUAL_STATES).optimum()
        except TooMuchWork:
            continue
        if optimum is None:  # a chunk that finds no room
            continue
        for store in range(len(problem.stores)):
            claim = Crossings(store=store, bound=optimum + 1)
            assert refusal(problem, claim) == (
                f"the crossings do not prove a bound of {optimum + 1}"
            )
        tried += 1
    assert tried > len(SMALL) // 2


def test_a_cycle_proves_nothing() -> None:
    problem = loop(2, 2).problem()
    edges = problem.edges
    back = replace(
        edges,
        before=np.append(edges.before, problem.task("0B0")),
        after=np.append(edges.after, problem.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    claim = Crossings(store=0, bound=1)
    circle = replace(problem, edges=back)
    assert refusal(circle, claim) == "the problem's precedences have a cycle"
