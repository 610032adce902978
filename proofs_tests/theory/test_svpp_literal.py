"""MEPipe's printed generator: what it gives, and where it first misses the paper's own Table 3."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.families.svpp import least_forwards, most_forwards
from bubbleproof.theory.families.svpp_literal import svpp_literal
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sized

Shape = tuple[int, int, int, int]  # (p, m, v, s), ordered as "smallest" is meant
ALL: list[Shape] = [
    (p, m, v, s)
    for p in range(1, 5)
    for m, v, s in product(range(1, 2 * p + 2), (1, 2, 3), (1, 2, 3, 4))
]
TOLD: list[Shape] = [(2, 2, 2, 1), (3, 1, 2, 4), (3, 4, 2, 1)]  # the smallest that miss, by reading
SHAPES = sized(sorted({*ALL[::5], *TOLD}), full=ALL)


def pipeline_of(shape: Shape) -> Pipeline:
    p, m, v, s = shape
    return Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, num_slices=s, backward=1)


@cache
def literal(shape: Shape, forwards: int, *, rescheduled: bool) -> Measures:
    pipeline = pipeline_of(shape)
    problem = pipeline.problem().with_capacity(forwards)
    schedule = left_shift(problem, svpp_literal(pipeline, forwards, rescheduled=rescheduled))
    verdict = check(problem, schedule)  # legal, and no rank above f
    assert verdict.ok, f"{shape} f={forwards}\n{verdict}"
    return measure(problem, schedule)


@cache
def ours(shape: Shape, forwards: int) -> int:
    p, m, v, s = shape
    made = member("svpp", p=p, m=m, v=v, s=s, f=forwards, tB=1)
    return measure(made.problem, made.schedule).makespan


def table_3_ticks(shape: Shape) -> int:
    p, m, v, s = shape
    return 2 * (m * v * s + p - 1 + (v - 1) * max(p - s * m, 0))


def misses(*, rescheduled: bool) -> list[Shape]:
    """The sizes whose printed schedule with the most forwards is longer than Table 3's."""
    found = []
    for shape in SHAPES:
        got = literal(shape, most_forwards(pipeline_of(shape)), rescheduled=rescheduled)
        assert got.makespan >= table_3_ticks(shape)
        if got.makespan > table_3_ticks(shape):
            found.append(shape)
    return found


@pytest.mark.parametrize("rescheduled", [False, True])
def test_it_never_deadlocks_and_never_holds_more_than_f(rescheduled: bool) -> None:
    for shape in SHAPES:
        pipeline = pipeline_of(shape)
        for forwards in range(least_forwards(pipeline), most_forwards(pipeline) + 1, 2):
            literal(shape, forwards, rescheduled=rescheduled)


def test_without_rescheduling_it_misses_table_3_from_two_ranks_on() -> None:
    # p=2, n=2, v=2, s=1: the sample's chunk 0 goes back before the next sample's chunk 1, so the
    # last rank waits for the ring where the next sample was ready: 11 ticks instead of 10.
    found = misses(rescheduled=False)
    assert found[0] == (2, 2, 2, 1)
    assert literal((2, 2, 2, 1), 4, rescheduled=False).makespan == 11
    assert ours((2, 2, 2, 1), 4) == table_3_ticks((2, 2, 2, 1)) == 10
    assert all(v > 1 for _, _, v, _ in found)


def test_children_count_is_the_wrong_priority() -> None:
    # p=3, n=1, v=2, s=4: slice 3 of chunk 0 has 3 children and slice 0 of chunk 1 has 1, but slice
    # 0 of chunk 0 waits for the latter's way around the ring: 21 ticks instead of 20.
    found = misses(rescheduled=True)
    assert found[0] == (3, 1, 2, 4)
    assert literal((3, 1, 2, 4), 8, rescheduled=True).makespan == 21
    assert ours((3, 1, 2, 4), 8) == table_3_ticks((3, 1, 2, 4)) == 20
    assert len(found) < len(misses(rescheduled=False))


def test_the_papers_own_example_takes_a_tick_more_than_its_table() -> None:
    # Figures 5(a) and 6: p=4, n=2, v=2, s=2, f=8.
    shape = (4, 2, 2, 2)
    assert literal(shape, 8, rescheduled=False).makespan == 25
    assert literal(shape, 8, rescheduled=True).makespan == 23
    assert ours(shape, 8) == table_3_ticks(shape) == 22
    for forwards, ticks in ((4, 32), (5, 30), (6, 28), (7, 26)):
        assert literal(shape, forwards, rescheduled=True).makespan == ticks
        assert ours(shape, forwards) == ticks


def test_with_one_chunk_both_generators_agree_on_every_length() -> None:
    for shape in SHAPES:
        pipeline = pipeline_of(shape)
        if shape[2] == 1:
            for forwards in range(least_forwards(pipeline), most_forwards(pipeline) + 1):
                printed = literal(shape, forwards, rescheduled=False).makespan
                assert printed == ours(shape, forwards), (shape, forwards)


def test_ours_is_seldom_longer_than_the_rescheduled_one() -> None:
    # Counted over every f; the first size where it is longer has f=3 between v*s=2 and the most, 6.
    longer, shorter = [], 0
    for shape in SHAPES:
        pipeline = pipeline_of(shape)
        for forwards in range(least_forwards(pipeline), most_forwards(pipeline) + 1):
            printed = literal(shape, forwards, rescheduled=True).makespan
            got = ours(shape, forwards)
            shorter += got < printed
            if got > printed:
                longer.append((*shape, forwards))
    assert len(longer) * 5 < shorter
    assert longer[0] == (3, 4, 2, 1, 3)
