"""PipeMesh's collectives: its equations against our schedules."""

from __future__ import annotations

import pytest

from bubbleproof.papers.pipemesh.pipemesh_formulas import exposed, optimizer_ticks
from bubbleproof.theory.pipelines.sharding import Sharding
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.test_pipemesh import filled
from proofs_tests.theory.test_pipemesh_collectives import (
    SHAPES,
    SOME,
    Shape,
    gradient_windows,
    late,
)


def optimizer_part(shape: Shape, ticks: int) -> int:
    """D_o of equation (2), with C_fwd = 1 and C_bwd = 2."""
    _, chunks, _, e, d = shape
    return optimizer_ticks(chunks, e, d, (ticks, ticks))


def test_optimizer_sharding_costs_what_equation_2_says() -> None:
    for shape in SOME:
        for ticks in (1, 3, 7):
            assert late(shape, Sharding(zero=1, gather=ticks, reduce=ticks)) == optimizer_part(
                shape, ticks
            )


@pytest.mark.sweep
def test_optimizer_sharding_costs_what_equation_2_says_on_more_shapes() -> None:
    more = [*SHAPES, *filled(range(4, 5), 9)]
    for shape in more[:: sized(31, full=1)]:
        for ticks in (2, 5, 11):
            assert late(shape, Sharding(zero=1, gather=ticks, reduce=ticks)) == optimizer_part(
                shape, ticks
            )


def test_gradient_sharding_costs_at_most_equation_3_with_the_window_of_the_next_visit() -> None:
    for shape in SOME:
        for ticks in (1, 3, 7):
            cost = late(shape, Sharding(zero=2, gather=ticks, reduce=ticks))
            part = sum(exposed(ticks, window) for window in gradient_windows(shape))
            assert cost <= optimizer_part(shape, ticks) + part, shape
            if not part:
                assert cost == optimizer_part(shape, ticks)


def test_a_reduction_overlaps_with_the_next_dequeue_not_with_its_own() -> None:
    # One rank, M = 1, e = (3), d = (2, 1), C = 7 (smallest in microbatches): F0 B0 F1 B1 F2 B2. The
    # reduction after B1 has only F2 and B2 (3 ticks) to hide behind; then comes the last one's 7.
    shape: Shape = (1, 1, 3, (3,), (2, 1))
    assert late(shape, Sharding(zero=2, gather=7, reduce=7)) == 2 * 7 + exposed(7, 1 + 2)
    assert exposed(7, 2 * 2) < exposed(7, 1 + 2)  # d_1 in equation (3) would promise too much


def test_parameter_sharding_is_hidden_where_the_passes_are_shared_out() -> None:
    # The planner gives a visit's backwards to the reduction and the rest to the gather
    # (B_Z2 + B_Z3 = B/S, section IV-B). Hidden if each visit outlasts both, and the forward gather
    # that may meet them on the NIC.
    hidden = 0
    for shape in sampled(SHAPES, every=3):
        *_, e, d = shape
        for ticks in (1, 2):
            if 3 * ticks > 2 * min(d) or 3 * ticks > min(e):
                continue
            hidden += 1
            cost = late(shape, Sharding(zero=3, gather=ticks, reduce=ticks))
            assert cost == optimizer_part(shape, ticks), (shape, ticks)
    assert hidden > sized(10, full=20)


def test_a_gather_and_a_reduction_that_claim_the_same_passes_are_not_hidden() -> None:
    # Equations (3) and (5) alone hide 3 ticks each behind d = 2 backwards of 2 ticks; but the NIC
    # carries one after the other: 6 > 4. Smallest: p = 1, M = 2, m = 4.
    shape: Shape = (1, 2, 4, (4,), (2, 2))
    assert all(exposed(3, window) == 0 for window in gradient_windows(shape))
    assert late(shape, Sharding(zero=3, gather=3, reduce=3)) == optimizer_part(shape, 3) + 2
