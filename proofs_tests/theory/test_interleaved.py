"""Interleaved 1F1B where p does not divide m: as short as before, with fewer activations."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from bubbleproof.theory.families import member, published_in_turn
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    depth_first_order,
    group_choices,
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


def test_megatrons_groups_where_ranks_do_not_divide_microbatches() -> None:
    """p=4 m=5 v=2 G=5: the last rank runs (v-1)G forwards, then forward and backward in turn.

    Rank r holds min(2(p-r-1) + (v-1)G + 1, mv) chunks: 12, 10, 8 and 6, of which there are 10. With
    one group more forwards than ranks wait for each other nowhere: (mv+p-1)(tF+tB) = 13 x 3 ticks.
    """
    found = member("interleaved", p=4, m=5, v=2, G=5, tF=1, tB=2)
    assert found.params["G"] == 5
    measured = measure(found.problem, found.schedule)
    assert measured.makespan == (5 * 2 + 4 - 1) * (1 + 2) == 39
    assert measured.peak_activations == (10, 10, 8, 6)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"m": 5, "v": 2, "G": 4}, "got G=4 with a rest of 1; use 5"),
        ({"m": 5, "v": 2, "G": 6}, "got G=6 with a rest of 5; use 5"),
        ({"m": 18, "v": 2, "G": 4}, "rest of 2; use 6 7 9 10 11 12 13 14 18"),
        ({"m": 3, "v": 2, "G": 3}, "use none: leave G out"),
        ({"m": 8, "v": 1, "G": 4}, "has two chunks or more, got v=1; use 1f1b"),
    ],
)
def test_groups_that_megatron_refuses_are_refused(params: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=r"interleaved") as caught:
        member("interleaved", p=4, **params)
    assert said in str(caught.value)


def test_no_other_family_takes_groups() -> None:
    for name in ("1f1b", "interleaved-spread", "bfs"):
        with pytest.raises(ValueError, match=f"{name} takes no parameter G, got G=4"):
            member(name, p=4, m=8, G=4)


def test_the_orders_of_the_source_are_the_default_or_the_first_legal_groups() -> None:
    """m = 18 on 4 ranks: 6, 7, 9, 10 are the least with a rest of 0 or 4 and more; 12 is three
    times the ranks, 18 all. Of 8, 1.5 times the ranks and more leaves all alone."""
    known = InterleavedOneForwardOneBackward()
    for m, names in (
        (8, ["interleaved", "interleaved G=8"]),
        (18, [f"interleaved G={size}" for size in (6, 7, 9, 10, 12, 18)]),
        (3, []),
    ):
        made = Pipeline(num_ranks=4, num_microbatches=m, num_chunks=2)
        assert list(known.grouped(made)) == names
        assert [name for name, _ in published_in_turn(made, ("interleaved G",))] == names
    lone = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=1)
    assert not known.grouped(lone)
    assert [name for name, _ in published_in_turn(lone, ("1f1b", "interleaved G"))] == ["1f1b"]


def test_larger_groups_hide_messages_and_are_tried_whatever_these_take() -> None:
    """tF = 2, tB = 4, latency 2, four ranks: a forward comes around in 4 (2 + 2) = 16 ticks, which
    8 forwards fill, and a backward in 4 (4 + 2) = 24, which 6 backwards fill.
    """
    known = InterleavedOneForwardOneBackward()
    at_once = Pipeline(num_ranks=4, num_microbatches=16, num_chunks=2, forward=2, backward=4)
    late = at_once.with_changes(latency=2)
    tried = known.grouped(late)
    assert list(tried) == ["interleaved", *(f"interleaved G={size}" for size in (6, 8, 12, 16))]
    assert list(known.grouped(at_once)) == list(tried)
    problem = late.problem()
    spans = [measure(problem, left_shift(problem, each.program(late))) for each in tried.values()]
    assert spans[2].makespan < spans[0].makespan
    assert spans[2].peak_activations[0] > spans[0].peak_activations[0]


def test_the_groups_that_are_tried_are_nearly_the_best_of_all_legal_ones() -> None:
    """By brute force over every legal G, where messages take time or p does not divide m."""
    draw, known, exact = random.Random(36), InterleavedOneForwardOneBackward(), 0
    drawn = sized(40, full=400)
    for _ in range(drawn):
        p, v, tick = draw.choice((2, 3, 4, 6)), draw.choice((2, 3, 4)), draw.choice((4, 10, 20))
        m = draw.choice((p * draw.randint(2, 6), draw.randint(p, 6 * p)))
        forward = tuple(tick + draw.randint(0, draw.choice((0, tick // 2))) for _ in range(p * v))
        made = Pipeline(
            num_ranks=p,
            num_microbatches=m,
            num_chunks=v,
            forward=forward,
            backward=tuple(2 * ticks for ticks in forward),
            latency=draw.choice((1, 2, 5, 8)),
        )
        problem = made.problem()
        tried, best = (
            min(measure(problem, left_shift(problem, each.program(made))).makespan for each in of)
            for of in (
                known.grouped(made).values(),
                [InterleavedOneForwardOneBackward(size) for size in group_choices(p, m)],
            )
        )
        assert tried <= 1.05 * best, (p, v, m, made.latency)
        exact += tried == best
    assert exact >= sized(30, full=344)


def test_one_chunk_says_who_runs_it() -> None:
    lone = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=1)
    told = InterleavedOneForwardOneBackward().ours(lone)
    assert told is not None
    assert "Megatron runs 1f1b at one" in told


@pytest.mark.torch
def test_torchs_interleaved_schedule_of_one_stage_per_rank_is_this_order() -> None:
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

    class Stage:
        """What the schedule asks of a stage when it lists its actions."""

        group_size, num_stages, is_first, is_last, group = 4, 4, False, False, None
        has_backward, device, dw_builder = True, "cpu", None

        def __init__(self, rank: int) -> None:
            self.group_rank = self.stage_index = rank
            self.stage_index_to_group_rank = {stage: stage for stage in range(4)}

    stages: Any = [Stage(0)]  # a stand-in: the order asks for no more
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=8, loss_fn=abs)
    found = member("interleaved", p=4, m=8, v=1).schedule.program.orders(4)
    for rank, order in schedule.pipeline_order.items():
        assert [str(each) for each in found[rank]] == [str(each) for each in order if each]
