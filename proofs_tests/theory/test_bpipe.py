"""BPipe: within its objective, as fast as 1F1B, with fewest evictions; and its printed form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from bubbleproof.theory.families.evicting.bpipe import BalancedFamily, BPipe, BPipeInterleaved
from bubbleproof.theory.families.evicting.bpipe_plan import (
    NoPlan,
    computation_slots,
    plan_transfers,
)
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.judged import accepted
from proofs_tests.sized import sampled, sized

BPIPE, INTERLEAVED = BPipe(), BPipeInterleaved()


def step(p: int, m: int, v: int = 1, tf: int = 1, tb: int = 2) -> Pipeline:
    return Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, forward=tf, backward=tb)


def measured(family: BalancedFamily, pipeline: Pipeline, transfer: int | None = None) -> Measures:
    """Measures of a schedule that the checker accepts with the objective as every rank's memory."""
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    balanced = family.balanced(pipeline, transfer=transfer)
    problem = balanced.problem()
    schedule = family.schedule(balanced, problem)
    return accepted(problem.with_capacity(family.objective(p, m, v)), schedule)


def sizes(most_ranks: int) -> Iterator[tuple[int, int]]:
    return ((p, m) for p in range(1, most_ranks + 1) for m in range(1, 3 * p + 1))


def test_every_rank_stays_within_the_objective_and_nothing_is_slower() -> None:
    for p, m in sampled([*sizes(12)], every=11):
        # 1F1B: rank 0 works on m microbatches without a gap but for p-1 hops to the end and back.
        assert measured(BPIPE, step(p, m)).makespan == (m + p - 1) * 3


@pytest.mark.sweep
def test_every_rank_stays_within_the_objective_up_to_32_ranks() -> None:
    """p <= 32, m <= 3p with ``BUBBLEPROOF_SWEEP=full``; the edges of it otherwise."""
    for p in sized([13, 32], full=[*range(13, 33)]):
        for m in sized([p - 1, p, p + 1, 3 * p], full=[*range(1, 3 * p + 1)]):
            assert measured(BPIPE, step(p, m)).makespan == (m + p - 1) * 3


def test_one_unit_less_is_refused() -> None:
    # At p=4 rank 0 holds 0, 2 and 3 beside B0 (Figure 4); no plan does with less (see the claims).
    for p in range(4, 10):
        balanced = BPIPE.balanced(step(p, 3 * p))
        problem = balanced.problem().with_capacity(BPIPE.objective(p, 3 * p) - 1)
        verdict = check(problem, BPIPE.schedule(balanced, problem))
        assert verdict.broken == (Rule.MEMORY,)


def test_the_papers_figure() -> None:
    # Figure 4 (p=4, m=8): stage 0 evicts 1, 3, 5 to stage 3; mu_opt = 3. Stage 2 holds its own 2.
    transfers = BPIPE.transfers(4, 8)
    assert list(transfers) == [0]
    moves = [(t.kind.name, t.microbatch) for t in transfers[0]]
    assert moves == [
        ("EVICT", 1),
        ("EVICT", 3),
        ("LOAD", 1),
        ("EVICT", 5),
        ("LOAD", 3),
        ("LOAD", 5),
    ]
    assert measured(BPIPE, step(4, 8)).peak_activations == (3, 3, 2, 3)


@pytest.mark.parametrize(("tf", "tb"), [(2, 4), (3, 6), (2, 2), (4, 2), (1, 3), (4, 5), (3, 0)])
def test_a_transfer_costs_no_time_exactly_where_two_fit_a_forward_and_a_backward(
    tf: int, tb: int
) -> None:
    # In the steady phase an evict and a load share the link between backwards, tF + tB apart.
    for p, m in sized(((4, 8), (5, 10)), full=((4, 8), (5, 10), (6, 13), (8, 17), (9, 18))):
        for t in range(tf + tb + 1):
            is_free = measured(BPIPE, step(p, m, 1, tf, tb), t).makespan == (m + p - 1) * (tf + tb)
            assert is_free == (2 * t <= tf + tb), (p, m, t)


def test_waits_and_not_luck_keep_the_objective() -> None:
    # Without the waits the forwards of rank 0 do not stop for a slow transfer: all 4 of p=4.
    slow = BPIPE.balanced(step(4, 8), transfer=9)
    hasty = slow.with_changes(waits=())
    problem = hasty.problem().with_capacity(3)
    verdict = check(problem, BPIPE.schedule(hasty, problem))
    assert verdict.broken == (Rule.MEMORY,)
    assert measured(BPIPE, step(4, 8), 9).makespan > 11 * 3


def test_interleaved_stays_within_the_objective_and_is_no_slower() -> None:
    for (p, m), v in sampled([*product(sizes(6), (1, 2, 3))], every=4):
        if m % p:
            continue
        plain = step(p, m, v)
        own = measure(plain.problem(), INTERLEAVED.base.schedule(plain))
        for transfer in (1, 0):
            got = measured(INTERLEAVED, plain, transfer)
            assert got.makespan == own.makespan, (p, m, v)


@pytest.mark.sweep
def test_interleaved_stays_within_the_objective_at_larger_shapes() -> None:
    """p <= 16, v <= 7 with ``BUBBLEPROOF_SWEEP=full``; a few of them otherwise."""
    for p in sized([8, 13], full=[*range(1, 17)]):
        for m in (p, 2 * p, 5 * p):
            for v in sized([3], full=[1, 2, 3, 4, 7]):
                plain = step(p, m, v)
                own = measure(plain.problem(), INTERLEAVED.base.schedule(plain)).makespan
                assert measured(INTERLEAVED, plain).makespan == own, (p, m, v)


def test_interleaved_takes_whole_groups_alone() -> None:
    # Appendix A counts with p microbatches a group. At p = 4, m = 6 one group of 6 held 11 11 9 8
    # balanced, where interleaved 1F1B holds 8 8 7 5 unbalanced and Appendix A allows 9.
    told = (
        r"bpipe-interleaved needs m to be a multiple of p=4 \(BPipe Appendix A\), got m=6; use m=8"
    )
    with pytest.raises(ValueError, match=told):
        INTERLEAVED(p=4, m=6)
    with pytest.raises(ValueError, match=told):
        INTERLEAVED.balanced(step(4, 6, 2))
    assert INTERLEAVED.refusal(step(4, 6, 2)) is not None
    assert INTERLEAVED.fitted(step(4, 6, 2)).choices.evictions == ()
    for p, m, v in product(range(1, 7), range(1, 13), (1, 2, 3)):
        if m % p == 0:
            held = max(measured(INTERLEAVED, step(p, m, v)).peak_activations)
            plain = step(p, m, v)
            alone = measure(plain.problem(), INTERLEAVED.base.schedule(plain))
            assert held <= min(p * v + 1, max(alone.peak_activations))


def test_interleaved_objective_is_the_papers_where_ranks_divide_microbatches() -> None:
    # Appendix A: mu(s) = p(v-1) + 2(p-s-1) + 1; p=4, v=2: 11 on rank 0, 9 allowed, so 2 of the 11
    # are evicted before the first backward.
    assert INTERLEAVED.objective(4, 8, 2) == 9
    slots = computation_slots(INTERLEAVED.base, 4, 8, 2)[0]
    first = next(i for i, action in enumerate(slots) if action and action.kind is Kind.B)
    moved = INTERLEAVED.transfers(4, 8, 2)[0]
    assert sum(t.kind is Kind.EVICT and t.slot < first - 1 for t in moved) == 2


def counted(p: int) -> list[int]:
    return sorted({*range(1, 2 * p + 3), 3 * p, 3 * p + 1, 4 * p, 8 * p})


def test_an_objective_that_no_plan_reaches_is_refused() -> None:
    slots = computation_slots(BPIPE.base, 4, 4)[0]
    with pytest.raises(NoPlan, match="slot 0 needs two transfers and no slot before it is free"):
        plan_transfers(slots, 0)
    with pytest.raises(NoPlan, match="slot 0 must evict, but nothing lies idle there"):
        plan_transfers(slots, 1)


def test_a_pipeline_without_the_evictions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bpipe needs its 3 evictions among the pipeline's choic"):
        BPIPE.schedule(step(4, 8))
    with pytest.raises(ValueError, match="1f1b has one chunk per rank, got v=2"):
        BPIPE.balanced(step(4, 8, 2))
    assert BPIPE.refusal(step(3, 8)) is None  # nothing to evict at p < 4


def test_a_users_pipeline_is_fitted_with_the_evictions() -> None:
    uneven = step(4, 8).with_changes(forward=(2, 1, 1, 3), activation=(5, 4, 3, 2), latency=1)
    fitted = BPIPE.fitted(uneven.with_changes(split_backward=True))
    assert BPIPE.refusal(fitted) is None
    problem = fitted.problem()
    measured = accepted(problem, BPIPE.schedule(fitted, problem))
    # Rank 0 holds 3 of its 5 units; rank 3 keeps 2 of them at once, beside 1 of its own 2.
    assert measured.peak_activations == (15, 12, 6, 12)
    assert BPIPE.fitted(step(4, 8, 2)) == step(4, 8, 2)  # 1F1B takes no chunks: left as it is


def test_a_transfer_takes_the_ticks_of_a_forward_by_default() -> None:
    made = BPIPE.pipeline(make_parameters({"p": 4, "m": 8, "tF": 3, "tB": 5}))
    assert {eviction.duration for eviction in made.choices.evictions} == {3}
    assert {frozenset((e.source, e.target)) for e in made.choices.evictions} == {frozenset((0, 3))}
