"""Interleaved 1F1B where p does not divide m: as short as before, with fewer activations."""

from __future__ import annotations

from itertools import product

import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    depth_first_order,
)
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import measured_order

ALL = [
    (p, m, v)
    for p, v in product((2, 3, 4), (1, 2, 3))
    for m in (*range(1, 2 * p + 2), 3 * p - 1, 5 * p + 1, 7 * p - 1)
]
SHAPES = sampled(ALL, every=7)


def test_never_longer_nor_fuller_than_with_the_remainder_spread() -> None:
    emptier = 0
    for p, m, v in SHAPES:
        for ticks in (1, 2):
            made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, backward=ticks)
            problem = made.problem()
            before = measure(problem, left_shift(problem, depth_first_order(made)))
            after = measured_order(made, InterleavedOneForwardOneBackward().program(made))
            assert after.makespan <= before.makespan, (p, m, v, ticks)
            assert max(after.peak_activations) <= max(before.peak_activations), (p, m, v)
            emptier += max(after.peak_activations) < max(before.peak_activations)
    assert emptier > sized(8, full=40)


def test_megatrons_order_stays_where_ranks_divide_microbatches() -> None:
    for p, m, v in SHAPES:
        if m % p == 0:
            made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v)
            found, published = (
                InterleavedOneForwardOneBackward().program(made),
                depth_first_order(made),
            )
            assert list(found.actions) == list(published.actions)


@pytest.mark.parametrize(
    ("p", "m", "v", "peak"),
    [
        (4, 7, 2, 8),  # v*p, from slice orders; 14 = m*v with the remainder spread
        (3, 8, 3, 9),  # v*p: groups of 3, 2, 3, warm-ups (v-1)*3 + (p-r-1) + 1
        (4, 7, 3, 18),  # (v-1)n + p with n = 7
        (4, 42, 3, 14),  # (v-1)n + p with n = 5, the first of ten groups
    ],
)
def test_peaks_by_hand(p: int, m: int, v: int, peak: int) -> None:
    found = member("interleaved", p=p, m=m, v=v)
    assert max(measure(found.problem, found.schedule).peak_activations) == peak
    # No order is shorter than the work behind p-1 forwards and before p-1 backwards.
    assert measure(found.problem, found.schedule).makespan == 3 * (m * v + p - 1)
