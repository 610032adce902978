"""PipeMesh's printed program, run by a second route."""

from __future__ import annotations

from bubbleproof.papers.pipemesh.pipemesh_domains import FILLED, PLANNED
from bubbleproof.papers.pipemesh.pipemesh_formulas import warm_up_forwards
from bubbleproof.papers.pipemesh.pipemesh_schedules import (
    Sequences,
    ends_as_printed,
    queue,
    runs_literally,
    sequences,
)

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


def test_what_ends_as_printed_is_what_a_run_of_the_printed_loops_ends() -> None:
    for at in FILLED.points[::4]:
        ended = ends(at["p"], at["v"], *sequences(at))
        assert ended == ends_as_printed(at) == runs_literally(at), at


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
    # themselves, each with a last dequeue (B C_bwd < S C_DP) longer than q less what is gone.
    waiting = [
        at for at in stuck if warm_up_forwards(at["p"], at["v"], at["q"], 0) <= at["v"] * at["m"]
    ]
    assert len(waiting) == 28
    for at in waiting:
        assert at["v"] > 1
        assert 2 * at["m"] < len(queue(at).enqueue) * at["C"]
    assert not ends(2, 2, (3, 3), (2, 4))
