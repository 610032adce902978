"""AdaPipe's plan and the blocks of recomputed 1F1B, held against trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.theory.families import family
from bubbleproof.theory.families.adapipe import AdaPipe
from bubbleproof.theory.families.adaptive_plan import AdaptivePlan, Layer, adaptive_plan
from bubbleproof.theory.families.block_orders import (
    block_program,
    recomputed_just_in_time,
)
from bubbleproof.theory.families.recomputed_1f1b import (
    RecomputedOneForwardOneBackward,
    share_of_chunks,
)
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sized

Sizes = tuple[int, ...]


def run_of(layers: list[Layer], sizes: Sizes, again: frozenset[int], m: int) -> Measures:
    """A partition as 1F1B over blocks, timed and measured by the checker's code."""
    ranks = tuple(rank for rank, size in enumerate(sizes) for _ in range(size))
    pipeline = Pipeline(
        num_ranks=len(sizes),
        num_microbatches=m,
        num_chunks=len(layers) // len(sizes),
        forward=[layer.forward for layer in layers],
        backward=[layer.backward for layer in layers],
        activation=[layer.activation for layer in layers],
        static=[layer.static for layer in layers],
        placement=ranks,
    )
    planned = recomputed_just_in_time(pipeline, again)
    problem = planned.problem()
    return measure(problem, left_shift(problem, block_program(planned)))


def partitions(number: int, ranks: int) -> Iterator[Sizes]:
    for cut in combinations(range(1, number), ranks - 1):
        yield tuple(b - a for a, b in pairwise((0, *cut, number)))


def lone_time(forwards: list[int], backwards: list[int], m: int) -> int:
    """T_0 of ranks that take so long: one after the other, by its definition."""
    p = len(forwards)
    warm, cool = [0] * (p + 1), [0] * (p + 1)
    total = 0
    for s in reversed(range(p)):
        flying = min(p - s, m)
        later_back, later_forth = (backwards[s + 1], forwards[s + 1]) if s + 1 < p else (0, 0)
        warm[s] = forwards[s] + max(warm[s + 1] + later_back, (flying - 1) * forwards[s])
        cool[s] = backwards[s] + max(cool[s + 1] + later_forth, (flying - 1) * backwards[s])
        each = forwards[s] + backwards[s]
        if m > flying:
            own = warm[s] + (m - flying) * each + cool[s]
        else:
            own = max(warm[s] + m * backwards[s], m * forwards[s] + cool[s])
        total = max(own, each + total)
    return total


def every_plan(layers: list[Layer], ranks: int, m: int, capacity: int) -> Iterator[tuple[int, int]]:
    """(T_0, makespan) of every partition and recomputation whose schedule fits."""
    for sizes in partitions(len(layers), ranks):
        for count in range(len(layers) + 1):
            for again in combinations(range(len(layers)), count):
                got = run_of(layers, sizes, frozenset(again), m)
                if max(got.peak_memory) <= capacity:
                    blocks = [
                        [layers[g] for g in range(sum(sizes[:r]), sum(sizes[: r + 1]))]
                        for r in range(ranks)
                    ]
                    forwards = [sum(one.forward for one in block) for block in blocks]
                    backwards = [sum(one.backward for one in block) for block in blocks]
                    for g in again:
                        home = next(r for r in range(ranks) if g < sum(sizes[: r + 1]))
                        backwards[home] += layers[g].again
                    yield lone_time(forwards, backwards, m), got.makespan


def uniform(number: int, static: int = 0) -> list[Layer]:
    return [Layer(forward=1, backward=2, again=1, static=static) for _ in range(number)]


UNEVEN = [
    Layer(forward=2, backward=3, again=2, activation=3, static=1),
    Layer(forward=1, backward=2, again=1, activation=1),
    Layer(forward=3, backward=4, again=3, activation=2, static=2),
    Layer(forward=1, backward=1, again=1, activation=4),
]


@pytest.mark.parametrize(
    ("layers", "ranks", "m", "capacity"),
    [
        (uniform(4), 2, 3, 2), (uniform(4), 2, 3, 3), (uniform(4), 2, 1, 1),
        (uniform(4, static=1), 2, 4, 4), *sized((), full=((uniform(6), 3, 4, 4),)),
        (UNEVEN, 2, 3, 9), (UNEVEN, 2, 4, 7), (UNEVEN, 4, 5, 9),
    ],
)  # fmt: skip
def test_no_partition_and_recomputation_that_fits_has_a_smaller_time(
    layers: list[Layer], ranks: int, m: int, capacity: int
) -> None:
    plan = adaptive_plan(layers, ranks=ranks, microbatches=m, capacity=capacity)
    every = [*every_plan(layers, ranks, m, capacity)]
    assert plan is not None
    assert plan.ticks == min(time for time, _ in every)
    assert all(time <= makespan for time, makespan in every)  # T_0 is a lower bound
    own = run_of(layers, plan.sizes, plan.recomputed, m)
    assert max(own.peak_memory) <= capacity
    # What is minimized is the bound; the schedule of its plan is within 4 % of the shortest here.
    assert own.makespan <= Fraction(104, 100) * min(makespan for _, makespan in every)


def test_nothing_fits_where_every_block_is_too_large() -> None:
    # A rank that recomputes all of its layers still holds one of 4 units, or its static memory.
    assert adaptive_plan(UNEVEN, ranks=2, microbatches=3, capacity=3) is None
    assert [*every_plan(UNEVEN, 2, 3, 3)] == []


ticks = st.integers(1, 9)


@settings(max_examples=sized(25, full=60))
@given(
    st.lists(
        st.builds(Layer, forward=ticks, backward=ticks, again=ticks, activation=st.integers(0, 5)),
        min_size=3,
        max_size=9,
    ),
    st.integers(1, 3),
    st.integers(1, 7),
    st.integers(1, 30),
)
def test_a_plan_is_a_partition_whose_layers_are_all_there(
    layers: list[Layer], ranks: int, m: int, capacity: int
) -> None:
    plan = adaptive_plan(layers, ranks=ranks, microbatches=m, capacity=capacity)
    free = adaptive_plan(layers, ranks=ranks, microbatches=m, capacity=None)
    assert isinstance(free, AdaptivePlan)
    assert not free.recomputed
    if plan is not None:
        assert sum(plan.sizes) == len(layers)
        assert min(plan.sizes) >= 1
        assert plan.placement == tuple(sorted(plan.placement))
        assert plan.ticks >= free.ticks


def test_with_memory_for_all_it_is_1f1b() -> None:
    for p, m, v in ((2, 3, 2), (3, 5, 3), (4, 4, 2)):
        made = family("adapipe")(p=p, m=m, v=v, f=p * v)
        plain = family("1f1b")(p=p, m=m, tF=v, tB=2 * v)
        got, expected = (measure(one.problem, one.schedule) for one in (made, plain))
        assert made.pipeline.choices.recompute is None
        assert (got.makespan, got.work) == (expected.makespan, expected.work)


def test_no_rank_holds_more_than_it_may_and_less_memory_takes_no_less_time() -> None:
    for p, m, v in ((2, 4, 3), (4, 6, 4)):
        spans = []
        for capacity in range(1, p * v + 1):
            made = family("adapipe")(p=p, m=m, v=v, f=capacity)
            got = measure(made.problem, made.schedule)
            assert max(got.peak_activations) <= capacity
            spans.append(got.makespan)
        assert spans == sorted(spans, reverse=True)
        assert spans[-1] == 3 * v * (m + p - 1)


def test_at_half_of_a_it_is_shorter_than_1f1b_with_half_recomputed() -> None:
    # The later ranks have memory to spare: they recompute nothing and take more layers.
    p, m, v = 4, 8, 12
    adaptive = family("adapipe")(p=p, m=m, v=v, f=p * v // 2)
    half = family("1f1b-recompute")(p=p, m=m, v=v)
    spans = [measure(one.problem, one.schedule) for one in (adaptive, half)]
    assert max(spans[0].peak_activations) <= max(spans[1].peak_activations) == p * v // 2
    assert spans[0].makespan < spans[1].makespan == (m + p - 1) * (3 * v + v // 2)
    sizes = [adaptive.pipeline.stage_ranks.count(rank) for rank in range(p)]
    assert sizes[0] < sizes[-1]


def test_a_pipeline_is_cut_within_its_own_capacity() -> None:
    plain = Pipeline(num_ranks=2, num_microbatches=4, num_chunks=3, capacity=4, static=0)
    cut = AdaPipe().prepared(AdaPipe().fitted(plain))
    assert check(cut.problem(), AdaPipe().schedule(cut)).ok
    assert cut.choices.recompute is not None
    hopeless = plain.with_changes(capacity=0)
    assert AdaPipe().prepared(AdaPipe().fitted(hopeless)).choices.recompute is None
    with pytest.raises(ValueError, match="no partition of 6 layers on 2 ranks fits 0 units"):
        AdaPipe().planned(AdaPipe().fitted(hopeless), capacity=0)


@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_recomputed_1f1b_takes_and_holds_what_its_text_says(v: int) -> None:
    # Appendix C: 7(m-1+p) at R = 50 and v = 2, and half of m_a: p of 2p units.
    for p, m in ((1, 2), (2, 1), (4, 3), (3, 7), (5, 11)):
        for k in range(v + 1):
            made = family("1f1b-recompute")(p=p, m=m, v=v, R=share_of_chunks(k, v))
            got = measure(made.problem, made.schedule)
            assert got.makespan == (m + p - 1) * (3 * v + k)
            held = tuple(min(p - r, m) * (v - k) if k < v else 1 for r in range(p))
            assert got.peak_activations == held


def test_the_groups_are_as_few_as_the_share_takes() -> None:
    for share, chunks in ((0, 1), (25, 4), (50, 2), (67, 3), (100, 1)):
        params = family("1f1b-recompute")(p=2, m=2, R=share).params
        assert (params["v"], params["R"]) == (chunks, share)
    with pytest.raises(ValueError, match="R=40 per cent is no whole number of 4 chunks"):
        family("1f1b-recompute")(p=2, m=2, v=4, R=40)


def test_a_recomputation_waits_for_the_gradient_even_where_all_is_recomputed() -> None:
    # One group a rank, p = 2, m = 1: F0 0..1, F1 1..2, then R1 2..3, B1 3..5, and R0 only now.
    made = family("1f1b-recompute")(p=2, m=1, R=100)
    starts = dict(
        zip(map(str, made.schedule.program.actions), made.schedule.start.tolist(), strict=True)
    )
    assert starts == {"0F0": 0, "1F0": 1, "1R0": 2, "1B0": 3, "0R0": 5, "0B0": 6}
    hasty = made.pipeline.with_changes(waits=())
    problem = hasty.problem()
    early = left_shift(problem, block_program(hasty))
    assert measure(problem, early).makespan == 7  # a negative control: R0 at 1, in the idle time


def test_stages_that_lie_in_no_blocks_are_refused() -> None:
    looped = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2)
    for owner in (AdaPipe(), RecomputedOneForwardOneBackward()):
        why = owner.refusal(looped)
        assert why == f"{owner.name} places stages as blocks: (0, 0, 1, 1)"
