"""Interleaved and PipeMesh: the closed form is the left-shifted schedule, tick for tick."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bubbleproof.papers.field import interleaved_starts, interleaved_theorem
from bubbleproof.papers.pipemesh import pipemesh_starts
from bubbleproof.papers.theorems.terms import Term
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sampled, sized

SIZES = [(p, groups * p, v) for p in range(1, 7) for groups in (1, 2, 3) for v in range(1, 4)]
STARTS = {
    Kind.F: interleaved_starts.FORM.forward(interleaved_theorem.R, interleaved_theorem.X),
    Kind.B: interleaved_starts.FORM.backward(interleaved_theorem.R, interleaved_theorem.X),
}
MESHES = [
    (p, groups * q, v, q)
    for p in range(1, 6)
    for q in range(p, p + 5)
    for groups in (1, 2, 3)
    for v in range(1, 4)
]
MESH_STARTS = {
    Kind.F: pipemesh_starts.FORM.forward(interleaved_theorem.R, interleaved_theorem.X),
    Kind.B: pipemesh_starts.FORM.backward(interleaved_theorem.R, interleaved_theorem.X),
}


def placed(found: FamilyMember) -> Iterator[tuple[Kind, int, int, int]]:
    """(kind, rank, place among the rank's actions of the kind, start) of every action."""
    program, count = found.schedule.program, dict[tuple[int, int], int]()
    columns = (program.actions.kind, program.resource, found.schedule.start)
    for kind, rank, start in zip(*(column.tolist() for column in columns), strict=True):
        place = count.get((kind, rank), 0)
        count[kind, rank] = place + 1
        yield Kind(kind), rank, place, start


def wrong_starts(p: int, m: int, v: int, ticks: tuple[int, int]) -> int:
    found = member("interleaved", p=p, m=m, v=v, tF=ticks[0], tB=ticks[1])
    values = {"p": p, "Q": (v - 1) * p, "N": m * v, "tF": ticks[0], "tB": ticks[1]}
    return wrong(found, STARTS, values)


def wrong(found: FamilyMember, starts: dict[Kind, Term], values: dict[str, int]) -> int:
    """How many actions start otherwise than the closed form says."""
    return sum(
        starts[kind].value({**values, "r": rank, "x": place}) != start
        for kind, rank, place, start in placed(found)
    )


@pytest.mark.parametrize("ticks", sized([(2, 3)], full=[(1, 2), (1, 1), (2, 3), (1, 7)]))
def test_every_start_is_pipemeshs(ticks: tuple[int, int]) -> None:
    for p, m, v, q in sized(MESHES[::5], full=MESHES):
        sequence = (q,) * (m // q)
        found = member("pipemesh", p=p, m=m, v=v, e=sequence, d=sequence, tF=ticks[0], tB=ticks[1])
        values = {"p": p, "Q": (v - 1) * q, "N": m * v, "q": q, "tF": ticks[0], "tB": ticks[1]}
        assert not wrong(found, MESH_STARTS, values), (p, m, v, q)


@pytest.mark.parametrize("ticks", sampled([(1, 2), (1, 1), (2, 3), (1, 7)], every=2))
def test_every_start_is_the_familys(ticks: tuple[int, int]) -> None:
    assert [size for size in SIZES if wrong_starts(*size, ticks)] == []


def test_backwards_faster_than_forwards_start_otherwise() -> None:
    # p=2, v=1, tF=3, tB=1: rank 1 ends B(0) at 7, but rank 0 is busy with its third F until 9.
    assert wrong_starts(2, 4, 1, (3, 1))


def test_lateness_is_what_rank_0_waits_for_the_last_rank() -> None:
    # p=4, v=2, tF=1, tB=2, m=8. Rank 3 (d=0, w=5) runs F(8) = F(w+3) behind B(3), so from
    # X + 3*3 + 2 = 19 to 20. Rank 0 may run F(12) then; its B(1), F(11) before it, is there at
    # X + 3 + 3*2 = 17 and ends at 19: one tick of waiting, e = 3*1 - 1*2.
    found = member("interleaved", p=4, m=8, v=2)
    starts = {(kind, rank, place): start for kind, rank, place, start in placed(found)}
    assert starts[Kind.F, 3, 8] == 19
    assert (starts[Kind.B, 0, 1], starts[Kind.F, 0, 12]) == (17, 20)
    assert measure(found.problem, found.schedule).makespan == (8 * 2 + 4 - 1) * 3
