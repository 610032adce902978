"""PipeMesh's printed program and its communication, measured by second routes."""

from __future__ import annotations

import pytest

from bubbleproof.papers.pipemesh.pipemesh_claims import gathers, planned, reductions
from bubbleproof.papers.pipemesh.pipemesh_domains import ANY, FEW_FILLED, PLANNED, SLOW
from bubbleproof.papers.pipemesh.pipemesh_schedules import (
    Sequences,
    has_enough,
    is_free,
    late,
    mesh,
    queue,
    runs_literally,
    sequences,
)
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.sharding import Sharding, collectives, visits

Pass = tuple[str, int, int]  # (kind, chunk, microbatch)


def listed(kind: str, sequence: tuple[int, ...], chunks: range) -> list[Pass]:
    found, first = [], 0
    for size in sequence:
        found += [(kind, chunk, j) for chunk in chunks for j in range(first, first + size)]
        first += size
    return found


def printed(p: int, v: int, e: tuple[int, ...], d: tuple[int, ...]) -> list[list[Pass]] | None:
    """The passes of each rank, lines 2 to 18; None where line 19 pops from an empty list."""
    forwards, backwards = listed("F", e, range(v)), listed("B", d, range(v - 1, -1, -1))
    programs = []
    for i in range(1, p + 1):
        ahead = (v - 1) * e[0] + 2 * (p - i)
        if ahead > len(forwards):
            return None
        pairs = zip(forwards[ahead:], backwards, strict=False)
        steady = [each for pair in pairs for each in pair]
        programs.append(forwards[:ahead] + steady + backwards[len(forwards) - ahead :])
    return programs


def awaited(p: int, v: int, rank: int, each: Pass) -> set[tuple[str, int, int]]:
    """What must be done before a pass, as (kind, stage, microbatch)."""
    kind, chunk, j = each
    stage = chunk * p + rank
    if kind == "F":
        return {("F", stage - 1, j)} if stage else set()
    return {("F", stage, j)} | ({("B", stage + 1, j)} if stage < p * v - 1 else set())


def ends(p: int, v: int, e: tuple[int, ...], d: tuple[int, ...]) -> bool:
    """Whether the printed programs end, run rank by rank until nobody can go on."""
    programs = printed(p, v, e, d)
    if programs is None:
        return False
    done: set[tuple[str, int, int]] = set()
    before = -1
    while before < len(done):
        before = len(done)
        for rank, program in enumerate(programs):
            while program and awaited(p, v, rank, program[0]) <= done:
                kind, chunk, j = program.pop(0)
                done.add((kind, chunk * p + rank, j))
    return not any(programs)


def test_the_criterion_against_a_run_of_the_printed_loops() -> None:
    for at in FEW_FILLED.points[::4]:
        ended = ends(at["p"], at["v"], *sequences(at))
        assert ended == is_free(at) == runs_literally(at), at


def test_the_planners_sequences_are_those_of_section_4b() -> None:
    made: dict[tuple[int, ...], list[Sequences]] = {}
    for at in PLANNED.points:
        found = queue(at)
        key = at["p"], at["m"], at["v"], at["q"]
        made.setdefault(key, []).append((found.enqueue, found.dequeue))
    # q = 4 of 7 enqueues (4, 3) and dequeues as many, or the least d_S that hides C_DP last; of 6
    # it would be (4, 2), below P = 3.
    assert made[3, 7, 2, 4] == [((4, 3), (4, 3)), ((4, 3), (3, 4))]
    assert (3, 6, 2, 4) not in made
    # Section IV-B's other case: q = 3 of 6 with C_DP = 7 > 6 C_bwd / 2 takes d_S = 4, and 2 first.
    assert made[2, 6, 2, 3] == [((3, 3), (3, 3)), ((3, 3), (2, 4))]


def test_the_planners_own_sequences_deadlock_its_executor() -> None:
    stuck = [at for at in PLANNED.points if not runs_literally(at)]
    for at in PLANNED.points[::3]:
        found = queue(at)
        assert ends(at["p"], at["v"], found.enqueue, found.dequeue) == runs_literally(at), at
    # Not for want of forwards alone: 28 pairs of sequences on two and three ranks wait for
    # themselves, all in the other case, each with a dequeue longer than q minus what is gone.
    waiting = [at for at in stuck if has_enough(at)]
    assert len(waiting) == 28
    assert all(at["others"] and at["v"] > 1 for at in waiting)
    assert not ends(2, 2, (3, 3), (2, 4))


def test_smaller_elements_deadlock_for_other_reasons_too() -> None:
    # P = 3, e = d = (1, 1, 1), M = 2: e_1 = q = 1 and 1 + 4 <= 6, but it does not end.
    at = {"p": 3, "m": 3, "v": 2, "e": 1, "d": 1, "R": 3, "S": 3}
    assert at in ANY.points
    assert is_free(at)
    assert not ends(3, 2, (1, 1, 1), (1, 1, 1))
    assert not runs_literally(at)


def test_the_collectives_of_a_rank_are_as_many_as_the_equations_count() -> None:
    for at in SLOW.points:
        e, d = sequences(at)
        listed = visits(mesh(at).pipeline.stage_ranks, e, d)
        sharding = Sharding(zero=3, gather=100, reduce=100, regather=1, rereduce=7)
        own = [each for each in collectives(listed, sharding) if each.visit.rank == 0]
        ticks = [(each.kind, each.ticks) for each in own if each.kind is not Kind.RESHARD]
        assert ticks.count((Kind.UNSHARD, 100)) == ticks.count((Kind.REDUCE_GRAD, 100)) == at["v"]
        assert ticks.count((Kind.UNSHARD, 1)) == gathers(at)
        assert ticks.count((Kind.REDUCE_GRAD, 7)) == reductions(at)


@pytest.mark.parametrize("ticks", [2, 5, 8])
def test_the_planned_sum_bounds_unequal_operations_too(ticks: int) -> None:
    for e, d in ((2, 3), (3, 2), (3, 5), (5, 2)):
        at = {"p": 2, "m": 5, "v": 3, "e": e, "d": d, "R": 1 + (e < 5), "S": 1 + (d < 5)}
        assert late({**at, "C": ticks}, zero=3) <= planned({**at, "C": ticks})
