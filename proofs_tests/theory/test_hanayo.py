"""Hanayo: the closed form is the schedule, and what MEPipe Table 3 says of it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bubbleproof.theory.families import family, member
from bubbleproof.theory.families.hanayo import Hanayo, closed_form_order, round_slots
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import assert_every_rule_holds, measured

FASTER = [
    "0F0 0F1 0F2 3F0 3B0 3F1 3B1 0B0 3F2 3B2 0B1 0B2",
    "1F0 2F0 1F1 2F1 2B0 1F2 1B0 2F2 2B1 1B1 2B2 1B2",
]
ALL = [
    (p, m, v)
    for p in range(1, 7)
    for m in (range(1, 2 * p + 2) if p < 5 else (1, p - 1, p, p + 1, 2 * p - 1, 2 * p, 2 * p + 1))
    for v in (1, 2, 3)
]
SMALL = sampled(ALL, every=10)


def table_3_slots(p: int, m: int, v: int) -> int:
    """Makespan over tF + tB that Table 3's bubble ratios stand for, for n >= p and for n < p."""
    return m * v + p - 1 if m >= p else v * p + m - 1


def test_every_rule_holds_for_up_to_six_ranks_and_three_chunks() -> None:
    for p, m, v in SMALL:
        assert_every_rule_holds(member("hanayo", p=p, m=m, v=v))


@pytest.mark.sweep
def test_every_rule_holds_on_large_shapes() -> None:
    chunks = sized((2, 5), full=(2, 4, 5))
    for p in sized(range(8, 9), full=range(7, 17)):
        for m, v in product(sized((p - 1, 2 * p + 1), full=(*range(1, 3 * p),)), chunks):
            assert_every_rule_holds(member("hanayo", p=p, m=m, v=v))


def test_the_closed_form_is_a_schedule_at_equal_ticks() -> None:
    for p, m, v in SMALL:
        made = member("hanayo", p=p, m=m, v=v, tF=1, tB=1)
        order = closed_form_order(made.pipeline)
        actions = order.actions
        step = np.where(actions.kind == Kind.F, actions.stage, 2 * p * v - 1 - actions.stage)
        slot = round_slots(p, m, v)[actions.microbatch, step // (2 * p)]
        start = 2 * slot + step % (2 * p)
        closed = Schedule(program=order, start=start)
        assert check(made.problem, closed).ok
        assert (left_shift(made.problem, order).start <= start).all()


def test_table_3_holds_at_equal_ticks() -> None:
    # The last round starts in slot mv-1 and takes 2p ticks: 2(mv-1) + 2p. With m <= p the last
    # microbatch starts in slot m-1 and takes v rounds: 2(m-1) + 2pv.
    for p, m, v in SMALL:
        got = measured("hanayo", p=p, m=m, v=v, tF=1, tB=1)
        slots = table_3_slots(p, m, v)
        assert got.makespan == 2 * slots
        assert got.idle_ratio == 1 - Fraction(m * v, slots)


def test_peaks_are_table_3s_on_the_worst_rank() -> None:
    # Table 3: A (vp units) where n >= p and n/p A (nv units) where n < p; others hold no more.
    for p, m, v in SMALL:
        assert max(measured("hanayo", p=p, m=m, v=v).peak_activations) == min(m, p) * v


def test_table_3_is_below_every_schedule_where_backwards_take_twice_as_long() -> None:
    # p=2, n=2, v=2, tF=1, tB=2: Table 3 says (nv + p-1)(tF + tB) = 15. Rank 1 holds stages 1 and 2
    # and rank 0 stages 0 and 3. 3F0 ends at 4 at the earliest and 3B0 at 6, so until 6 rank 1 can
    # only run its 4 forwards, and the first of them not before 1: at 6 all 4 backwards (8 ticks)
    # lie before it. The last of them ends at 14 or later, is a 1B (each follows its 2B) and has its
    # 0B of 2 ticks to come: 16 at least. The family reaches it.
    assert table_3_slots(2, 2, 2) * 3 == 15
    assert measured("hanayo", p=2, m=2, v=2, tF=1, tB=2).makespan == 16


def test_smaller_sizes_meet_table_3_also_with_long_backwards() -> None:
    for p, m, v in SMALL:
        if (p == 1 or m == 1 or v == 1) and (m <= p or m % p == 0):
            got = measured("hanayo", p=p, m=m, v=v, tF=1, tB=2)
            assert got.makespan == 3 * table_3_slots(p, m, v)


def test_no_slot_is_empty_and_no_rank_holds_more_where_ranks_do_not_divide_microbatches() -> None:
    for p, v in product(range(2, 17), (2, 3, 4)):
        for m in (p + 1, 2 * p - 1, 3 * p - 1, 3 * p + p // 2):
            slots = round_slots(p, m, v)
            assert sorted(slots.ravel().tolist()) == list(range(m * v)) or m % p == 0
            assert (np.diff(slots, axis=1) >= p).all()
    # p=2, m=3, v=2: groups alone would take 16 ticks; this order takes Table 3's 14 within Table
    # 3's A, 4 units, and so does the family's.
    problem = Pipeline(
        num_ranks=2, num_microbatches=3, num_chunks=2, placement="wave", backward=1, capacity=4
    ).problem()
    schedule = left_shift(problem, Program.from_orders([order.split() for order in FASTER]))
    verdict = check(problem, schedule)
    assert verdict.ok
    assert measure(problem, schedule).makespan == 14
    assert measured("hanayo", p=2, m=3, v=2, tF=1, tB=1).makespan == 14


@pytest.mark.sweep
def test_the_closed_form_meets_table_3_up_to_16_ranks_and_four_chunks() -> None:
    """Every remainder with ``BUBBLEPROOF_SWEEP=full``; a few of them otherwise."""
    for p, v in sized([(4, 4), (7, 3)], full=[*product(range(2, 17), (3, 4))]):
        for m in sized((p + 2, 2 * p + 1), full=range(p + 1, 3 * p)):
            made = member("hanayo", p=p, m=m, v=v, tF=1, tB=1)
            closed = left_shift(made.problem, closed_form_order(made.pipeline))
            got = measure(made.problem, closed)
            assert got.makespan == 2 * table_3_slots(p, m, v)
            assert max(got.peak_activations) <= p * v


def test_where_no_way_keeps_within_a_the_last_group_is_short() -> None:
    # p = 4, m = 5, v = 5 has none: one microbatch by itself, slots 20, 24, ... 36 of which are
    # 2(v-1)(p-1) = 24 ticks beyond Table 3.
    assert round_slots(4, 5, 5)[-1].tolist() == [20, 24, 28, 32, 36]
    made = member("hanayo", p=4, m=5, v=5, tF=1, tB=1)
    closed = left_shift(made.problem, closed_form_order(made.pipeline))
    assert measure(made.problem, closed).makespan == 2 * table_3_slots(4, 5, 5) + 24


def test_one_chunk_is_1f1b_in_a_different_order_of_the_same_length() -> None:
    for p, m in ((1, 1), (3, 3), (4, 7)):
        ours, other = measured("hanayo", p=p, m=m, v=1), measured("1f1b", p=p, m=m)
        assert ours.makespan == other.makespan


def test_hanayo_is_placed_as_a_wave() -> None:
    assert member("hanayo", p=3, m=1, v=2).pipeline.stage_ranks == (0, 1, 2, 2, 1, 0)
    looped = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2)
    with pytest.raises(ValueError, match=r"hanayo places stages as wave: \(0, 1, 1, 0\)"):
        family("hanayo").schedule(looped)
    assert isinstance(family("hanayo"), Hanayo)
