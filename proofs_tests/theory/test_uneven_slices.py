"""TeraPipe's slice lengths, held against every way to cut a sample and against built schedules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.theory.families.gpipe import TeraPipe
from bubbleproof.theory.families.sliced.uneven_slices import (
    SliceTicks,
    uneven_slices,
    unevenly_sliced,
)
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from bubbleproof.verify.required_decision import check_required
from proofs_tests.sized import sized


def causal(length: int, before: int) -> int:
    """Four ticks of start-up, one a granule, and one for each pair of granules that attend."""
    return 4 + length + length * before + length * (length + 1) // 2


def cuts(granules: int) -> Iterator[tuple[int, ...]]:
    for count in range(granules):
        for marks in combinations(range(1, granules), count):
            yield tuple(b - a for a, b in pairwise((0, *marks, granules)))


def step_of(lengths: tuple[int, ...], ranks: int, m: int, ticks: SliceTicks) -> int:
    each = [ticks(length, sum(lengths[:k])) for k, length in enumerate(lengths)]
    return m * sum(each) + (ranks - 1) * max(each)


def test_two_slices_by_hand() -> None:
    # Two granules, two ranks, one sample: whole, 4 + 2 + 3 = 9 and once more 9 are 18. Cut, the
    # slices take 4+1+1 = 6 and 4+1+1+1 = 7: 13 + 7 = 20. On five ranks 9 + 36 = 45 and 13 + 28.
    two, five = (uneven_slices(2, ranks=p, microbatches=1, ticks=causal) for p in (2, 5))
    assert (two.lengths, two.ticks) == ((2,), 18)
    assert (five.lengths, five.ticks) == ((1, 1), 41)


@pytest.mark.parametrize("ranks", [1, 2, 4, 9])
@pytest.mark.parametrize("m", [1, 3])
def test_no_cut_has_a_shorter_step(ranks: int, m: int) -> None:
    for granules in range(1, 11):
        found = uneven_slices(granules, ranks=ranks, microbatches=m, ticks=causal)
        least = min(step_of(lengths, ranks, m, causal) for lengths in cuts(granules))
        assert sum(found.lengths) == granules
        assert found.ticks == least == step_of(found.lengths, ranks, m, causal)


@settings(max_examples=sized(25, full=60))
@given(
    st.lists(st.integers(0, 12), min_size=36, max_size=36),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_so_it_is_for_any_ticks(drawn: list[int], granules: int, ranks: int, m: int) -> None:
    def ticks(length: int, before: int) -> int:
        end = length + before
        return drawn[end * (end - 1) // 2 + before]

    found = uneven_slices(granules, ranks=ranks, microbatches=m, ticks=ticks)
    assert found.ticks == min(step_of(lengths, ranks, m, ticks) for lengths in cuts(granules))


def sliced(p: int, m: int, granules: int) -> tuple[Pipeline, tuple[int, ...], int]:
    plain = Pipeline(num_ranks=p, num_microbatches=m)
    pipeline, found = unevenly_sliced(
        plain, granules, forward=causal, backward=lambda length, before: 2 * causal(length, before)
    )
    return pipeline, found.lengths, found.ticks


def test_the_schedule_takes_just_that_long_and_passes_every_rule() -> None:
    for p, m, granules in ((2, 1, 4), (4, 2, 12), (6, 1, 16), (3, 4, 9)):
        pipeline, lengths, ticks = sliced(p, m, granules)
        problem = pipeline.problem()
        schedule = TeraPipe().schedule(pipeline, problem)
        assert check(problem, schedule).ok
        assert check_required(pipeline, problem).ok
        got = measure(problem, schedule)
        assert got.makespan == ticks
        # All slices of all samples lie in memory between the forwards and the backwards.
        assert got.peak_activations == (m * len(lengths),) * p


def test_later_slices_are_shorter_and_even_ones_take_longer() -> None:
    pipeline, lengths, ticks = sliced(8, 1, 24)
    assert lengths == tuple(sorted(lengths, reverse=True))
    assert lengths[0] > lengths[-1]
    even = [
        step_of((24 // s,) * s, 8, 1, lambda length, before: 3 * causal(length, before))
        for s in (1, 2, 3, 4, 6, 8, 12, 24)
    ]
    assert ticks < min(even)
    assert pipeline.num_slices == len(lengths)


@pytest.mark.parametrize(
    ("granules", "each", "message"),
    [(0, 1, "a sample has 1 granule or more, got 0"), (3, -1, "a slice takes 0 ticks or more")],
)
def test_what_cannot_be_cut(granules: int, each: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        uneven_slices(granules, ranks=2, microbatches=1, ticks=lambda *_: each)
