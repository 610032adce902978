"""The time-memory frontier against every order there is; its closed form against the checker."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from bubbleproof.papers.field import frontier
from bubbleproof.papers.theorems.closed_form import I as RANK
from bubbleproof.theory.model.actions import ActionTable, Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.check import check
from proofs_tests.sized import sized

Order = tuple[tuple[str, int], ...]


def formula(p: int, m: int, most: int, pair: int, links: int = 0) -> int:
    """Links take ``links`` pairs there and back, so a round trip R = p + (p-1) links."""
    around = p + (p - 1) * links
    return (m + around - 1 + (m - 1) // most * (around - most)) * pair


@cache
def orders(m: int, most: int) -> tuple[Order, ...]:
    """Every order of one rank with F and B in index order and at most ``most`` live."""

    def extend(done_f: int, done_b: int) -> list[Order]:
        if done_b == m:
            return [()]
        found: list[Order] = []
        if done_f < m and done_f - done_b < most:
            found += [(("F", done_f), *rest) for rest in extend(done_f + 1, done_b)]
        if done_b < done_f:
            found += [(("B", done_b), *rest) for rest in extend(done_f, done_b + 1)]
        return found

    return tuple(extend(0, 0))


def makespan(ranks: tuple[Order, ...], forward: int, backward: int, latency: int = 0) -> int | None:
    """The left-shifted makespan of the orders, None for a deadlock: plain simulation."""
    p = len(ranks)
    end: dict[tuple[str, int, int], int] = {}
    at, free = [0] * p, [0] * p
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(ranks):
            while at[rank] < len(order):
                kind, j = order[at[rank]]
                needs = [(kind, rank + (1 if kind == "B" else -1), j)]
                needs = [n for n in needs if 0 <= n[1] < p]
                if kind == "B":
                    needs.append(("F", rank, j))
                if any(n not in end for n in needs):
                    break
                ready = (end[n] + latency * (n[1] != rank) for n in needs)
                start = max([free[rank], *ready])
                free[rank] = start + (forward if kind == "F" else backward)
                end[kind, rank, j] = free[rank]
                at[rank] += 1
                moved = True
    return max(free) if all(a == len(o) for a, o in zip(at, ranks, strict=True)) else None


def least(m: int, caps: tuple[int, ...], forward: int, backward: int, latency: int = 0) -> int:
    """The least makespan over every choice of orders with at most ``caps[r]`` live on rank r."""
    choices = product(*(orders(m, cap) for cap in caps))
    found = (makespan(choice, forward, backward, latency) for choice in choices)
    return min(x for x in found if x is not None)


@pytest.mark.parametrize(
    ("p", "m"), [(1, 3), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (3, 4)]
)
@pytest.mark.parametrize(("forward", "backward"), [(1, 2), (2, 1)])
def test_no_order_beats_the_frontier(p: int, m: int, forward: int, backward: int) -> None:
    """Rank 0 holds at most K and the others any number; then every rank holds at most K."""
    for most in range(1, p + 1):
        expected = formula(p, m, most, forward + backward)
        assert least(m, (most,) + (m,) * (p - 1), forward, backward) == expected
        kept = tuple(min(most, p - rank) for rank in range(p))
        assert least(m, kept, forward, backward) == expected


def test_a_later_rank_below_1f1b_is_slower_too() -> None:
    """stages-bound at c = 1, p = 3, K = 1: (m+p-1)P + q(p-1-1)P with q = m - 1, so 3 more pairs."""
    assert least(4, (4, 1, 4), 1, 2) >= (4 + 3 - 1 + 3) * 3
    assert least(4, (4, 2, 4), 1, 2) == (4 + 3 - 1) * 3  # what 1F1B holds suffices


@pytest.mark.parametrize(("p", "m"), [(2, 3), (2, 4), (3, 2), (3, 3)])
@pytest.mark.parametrize("latency", [1, 2])
def test_no_order_beats_the_frontier_with_links(p: int, m: int, latency: int) -> None:
    """tF = tB = 1, so a link of l ticks there and back takes c = l pairs; K up to a round trip."""
    for most in range(1, p + (p - 1) * latency + 1):
        expected = formula(p, m, most, 2, latency)
        assert least(m, (most,) + (m,) * (p - 1), 1, 1, latency) == expected


@pytest.mark.parametrize(("p", "m"), [(2, 2), (2, 3), (3, 2)])
def test_links_that_are_no_pairs_meet_the_bound_in_small_problems(p: int, m: int) -> None:
    """P = 3 and 2l = 2 or 4: (m+p-1)P + 2(p-1)l + floor((m-1)/K) max(0, (p-K)P + 2(p-1)l)."""
    for latency, most in product((1, 2), range(1, 4)):
        way = (p - 1) * 2 * latency
        price = max(0, (p - most) * 3 + way)
        expected = (m + p - 1) * 3 + way + (m - 1) // most * price
        assert least(m, (most,) + (m,) * (p - 1), 1, 2, latency) == expected


@pytest.mark.parametrize(
    ("forward", "backward", "links"),
    [(1, 2, 0), (1, 1, 0), (3, 2, 0), (1, 1, 1), (3, 1, 1), (1, 1, 2)],
)
def test_the_closed_form_is_a_schedule_within_its_memory(
    forward: int, backward: int, links: int
) -> None:
    form = frontier.FrontierForm()
    terms = {Kind.F: form.forward(RANK, frontier.J)}
    terms[Kind.B] = form.backward(RANK, frontier.J)
    for p, m in product(range(1, sized(5, full=6)), range(1, sized(8, full=12))):
        latency = links * (forward + backward) // 2
        around = [p - rank + (p - 1 - rank) * links for rank in range(p)]
        for most in range(1, around[0] + 1):
            rows = []
            for rank, kind, j in product(range(p), (Kind.F, Kind.B), range(m)):
                values = {"p": p, "m": m, "K": most, "i": rank, "q": j // most, "s": j % most}
                values |= {"tF": forward, "tB": backward, "c": links, "u": latency}
                rows.append((rank, int(terms[kind].value(values)), kind, j))
            rank, start, kind, j = np.array(sorted(rows)).T
            program = Program(actions=ActionTable.of(kind, rank, j), resource=rank)
            capacity = tuple(min(most, held) for held in around)
            problem = Pipeline(
                num_ranks=p,
                num_microbatches=m,
                forward=forward,
                backward=backward,
                capacity=capacity,
                latency=latency,
            ).problem()
            schedule = Schedule(program=program, start=start)
            assert check(problem, schedule).ok, (p, m, most)
            expected = formula(p, m, most, forward + backward, links)
            assert measure(problem, schedule).makespan == expected
