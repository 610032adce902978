"""The places of the theorems on lists are those of the families' programs."""

from __future__ import annotations

from itertools import accumulate

import pytest

from bubbleproof.papers.theorems.list_places import MicrobatchRange, PlaceOf, Places
from bubbleproof.papers.theorems.terms import index
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Kind

Sizes = tuple[int, ...]
OF_KIND = {Kind.F: Places().forward, Kind.B: Places().backward}


def numbered(place: PlaceOf, v: int, chunk: int, microbatch: int, sizes: Sizes) -> int:
    """The formula's number, in the operation that the microbatch is in."""
    ends = list(accumulate(sizes))
    k = next(k for k, end in enumerate(ends) if microbatch < end)
    term = place(index("chunk"), index("j"), MicrobatchRange(index("before"), index("size")))
    values = {"v": v, "chunk": chunk, "j": microbatch, "before": ends[k] - sizes[k]}
    return int(term.value({**values, "size": sizes[k]}))


def assert_places(made: FamilyMember, e: Sizes, d: Sizes) -> None:
    p, v = made.pipeline.num_ranks, made.pipeline.num_chunks
    for rank, order in enumerate(made.schedule.program.orders(p)):
        for kind, sizes in ((Kind.F, e), (Kind.B, d)):
            tasks = [action for action in order if action.kind is kind]
            found = [numbered(OF_KIND[kind], v, a.stage // p, a.microbatch, sizes) for a in tasks]
            assert found == list(range(v * sum(sizes))), (rank, kind)


@pytest.mark.parametrize("v", [1, 2, 3])
@pytest.mark.parametrize(("p", "groups"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 2)])
def test_interleaved_runs_groups_of_p(p: int, groups: int, v: int) -> None:
    assert_places(member("interleaved", p=p, m=p * groups, v=v), (p,) * groups, (p,) * groups)


@pytest.mark.parametrize(
    ("p", "e", "d"),
    [(2, (2, 3), (5,)), (2, (3, 2, 2), (2, 2, 3)), (3, (4, 3), (3, 4)), (2, (4,), (2, 2))],
)
def test_pipemesh_runs_its_sequences(p: int, e: Sizes, d: Sizes) -> None:
    assert_places(member("pipemesh", p=p, m=sum(e), v=2, e=e, d=d), e, d)
