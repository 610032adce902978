"""Orders below p and Hanayo's durations, by orders written down here."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.field.field_first import TIME
from bubbleproof.papers.formula import Formula
from bubbleproof.papers.mepipe.mepipe_table3 import makespan, measured
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure


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
