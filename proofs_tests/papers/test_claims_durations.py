"""VPP's least warm-up, orders below p and Hanayo's durations, by orders written down here."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.field.field_few import TIME
from bubbleproof.papers.formula import Formula
from bubbleproof.papers.mepipe.mepipe_hanayo import makespan, measured
from bubbleproof.papers.mepipe.mepipe_vpp import (
    at_least_warm_up,
    fewest_forwards,
    least,
    megatrons,
    warmed_up,
)
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift


def timed(orders: list[str], at: Params, placement: str = "loop") -> Measures:
    problem = Pipeline(
        num_ranks=at["p"],
        num_microbatches=at["m"],
        num_chunks=at["v"],
        placement=placement,
        forward=at["tF"],
        backward=at["tB"],
    ).problem()
    program = Program.from_orders([order.split() for order in orders])
    return measure(problem, left_shift(problem, program))


TWO = {"p": 2, "m": 2, "v": 2, "tF": 1, "tB": 1}
# The least warm-up: (v-1)g + min(p-r, g) = 2 + 2 forwards on rank 0, 2 + 1 on rank 1.
TWO_ORDERS = ["0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"]


def test_the_least_warm_up_written_out_on_two_ranks() -> None:
    found = timed(TWO_ORDERS, TWO)
    # nv + p-1 = 5 slots of two ticks, pv = 4 units on rank 0 (it warms up with all there are).
    assert (found.makespan, max(found.peak_activations)) == (10, 4)
    assert at_least_warm_up(TWO) == found
    assert [least(TWO, r) for r in range(2)] == [4, 3]
    # 2B0 on rank 0 waits for 3B0, which waits for all of rank 0's first three forwards and 3F0.
    assert warmed_up(TWO, (4, 2)) is None  # rank 1 would run 3B0 before 3F0
    later = timed(["0F0 0F1 2F0 2B0 2F1 2B1 0B0 0B1", TWO_ORDERS[1]], TWO)
    assert later.makespan > 10  # 2F1 behind 2B0: rank 1 waits for it


def depth_first(p: int, m: int, v: int, per_hop: int) -> list[str]:
    """Megatron's table by its definition, one group of p after another; texts of each rank."""
    table = [(c, g * p + j) for g in range(m // p) for c in range(v) for j in range(p)]
    orders = []
    for r in range(p):
        forwards = [f"{c * p + r}F{j}" for c, j in table]
        backwards = [f"{(v - 1 - c) * p + r}B{j}" for c, j in table]
        ahead = min((v - 1) * p + per_hop * (p - r - 1) + 1, m * v)
        order, todo = forwards[:ahead], forwards[ahead:]
        for backward in backwards:
            order += [backward, *todo[:1]]
            todo = todo[1:]
        orders.append(" ".join(order))
    return orders


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (3, 6, 2), (3, 3, 3), (4, 8, 3)])
@pytest.mark.parametrize(("forward", "backward"), [(1, 1), (1, 2), (3, 1)])
def test_one_forward_per_hop_is_as_fast_as_two_and_holds_no_more_than_a_sample(
    p: int, m: int, v: int, forward: int, backward: int
) -> None:
    at = {"p": p, "m": m, "v": v, "tF": forward, "tB": backward}
    lean, usual = (timed(depth_first(p, m, v, hops), at) for hops in (1, 2))
    assert lean.makespan == usual.makespan == (m * v + p - 1) * (forward + backward)
    assert max(lean.peak_activations) == p * v
    assert max(usual.peak_activations) == min(p * v + p - 1, m * v)
    assert (at_least_warm_up(at), warmed_up(at, megatrons(at))) == (lean, usual)
    none = timed(depth_first(p, m, v, 0), at)  # control: no forward per hop costs time
    assert none.makespan > lean.makespan


def test_the_trial_finds_the_number_of_forwards_from_below() -> None:
    at = {"p": 3, "m": 6, "v": 2, "tF": 1, "tB": 2}
    assert [fewest_forwards({**at, "r": r}) for r in range(3)] == [6, 5, 4]
    assert megatrons(at) == (8, 6, 4)


@pytest.mark.parametrize(("p", "m", "v"), [(2, 1, 2), (3, 2, 2), (5, 3, 2), (4, 3, 3)])
@pytest.mark.parametrize("name", ["interleaved", "bfs"])
def test_below_p_the_last_stage_alone_explains_the_time(name: str, p: int, m: int, v: int) -> None:
    # Stage pv-1 begins after pv-1 forwards, works m(tF + tB) without a pause, and pv-1 backwards
    # follow its last one.
    made = member(name, p=p, m=m, v=v, tF=2, tB=3)
    own = made.schedule.program.actions.stage == p * v - 1
    begins = made.schedule.start[own]
    assert begins.min() == (p * v - 1) * 2
    total = measure(made.problem, made.schedule).makespan
    assert total == (p * v - 1) * 5 + m * 5
    assert total == Formula(TIME)({"p": p, "m": m, "v": v, "tF": 2, "tB": 3})


def simulated(p: int, m: int, v: int, forward: int, backward: int) -> int:
    """Hanayo's closed form as a list of (start at ticks of 1, label), run tick by tick here."""
    stages = p * v
    home = [g % p if g // p % 2 == 0 else p - 1 - g % p for g in range(stages)]
    rows: list[list[tuple[int, str, int, int]]] = [[] for _ in range(p)]
    for j in range(m):
        begin = 2 * stages * (j // p) + 2 * (j % p)
        for g in range(stages):
            rows[home[g]].append((begin + g, "F", g, j))
            rows[home[g]].append((begin + 2 * stages - 1 - g, "B", g, j))
    todo = [sorted(row) for row in rows]
    ended: dict[tuple[str, int, int], int] = {}
    free = [0] * p
    while any(todo):
        for rank, row in enumerate(todo):
            if not row:
                continue
            _, kind, g, j = row[0]
            before = ("F", g - 1, j) if kind == "F" else ("B", g + 1, j)
            if kind == "B" and g == stages - 1:
                before = ("F", g, j)
            if before[1] >= 0 and before not in ended:
                continue
            begin = max(free[rank], ended.get(before, 0))
            free[rank] = ended[kind, g, j] = begin + (forward if kind == "F" else backward)
            row.pop(0)
    return max(ended.values())


@pytest.mark.parametrize(("p", "m", "v"), [(2, 2, 2), (2, 6, 3), (3, 2, 2), (4, 8, 2), (5, 5, 4)])
@pytest.mark.parametrize(("forward", "backward"), [(1, 1), (1, 3), (3, 1), (2, 3)])
def test_hanayos_time_is_the_formula_in_a_simulation_of_its_own(
    p: int, m: int, v: int, forward: int, backward: int
) -> None:
    at = {"p": p, "m": m, "v": v, "tF": forward, "tB": backward}
    assert simulated(p, m, v, forward, backward) == makespan(at) == measured(at).makespan


def test_hanayos_first_wait_is_the_one_derived_by_hand() -> None:
    # ``test_hanayo`` derives 16 for p = n = v = 2, tF = 1, tB = 2, where Table 3 says 15; one chunk
    # waits for nothing.
    assert makespan({"p": 2, "m": 2, "v": 2, "tF": 1, "tB": 2}) == 16
    assert makespan({"p": 4, "m": 8, "v": 1, "tF": 1, "tB": 5}) == Fraction((8 + 3) * 6)
